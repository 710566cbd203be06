import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseTraceParent, withTraceHeaders } from '../../../../src/http/headers/forwardable-headers.ts'
import { headerValues } from '../../../../src/http/headers/header-lines.ts'
import { anyText } from '../../../support/any-text.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const good = `00-${traceId}-${spanId}-01`

test.each([
  ['recorded', good, { traceId, spanId, sampled: true }],
  ['not recorded', `00-${traceId}-${spanId}-00`, { traceId, spanId, sampled: false }],
  ['flags of a later level', `00-${traceId}-${spanId}-ff`, { traceId, spanId, sampled: true }],
  ['a later version that says more', `cc-${traceId}-${spanId}-01-what`, { traceId, spanId, sampled: true }],
  ['version 00 that says more', `${good}-what`, undefined],
  ['version ff', `ff-${traceId}-${spanId}-01`, undefined],
  ['a trace id of zeros', `00-${'0'.repeat(32)}-${spanId}-01`, undefined],
  ['a span id of zeros', `00-${traceId}-${'0'.repeat(16)}-01`, undefined],
  ['capitals', good.toUpperCase(), undefined],
  ['two of them', `${good}, ${good}`, undefined],
  ['a short one', good.slice(0, -1), undefined],
  ['nothing', undefined, undefined],
  ['very much', `cc-${traceId}-${spanId}-01-${'x'.repeat(5_000)}`, undefined],
])('traceparent: %s', (_, value, expected) => {
  expect(parseTraceParent(value)).toEqual(expected)
})

test('a valid context is forwarded unchanged, with its state', () => {
  const headers = ['accept', '*/*', 'tracestate', 'a=b', 'traceparent', good]
  expect(withTraceHeaders(headers, undefined)).toEqual([
    ...['accept', '*/*', 'traceparent', good],
    ...['tracestate', 'a=b'],
  ])
})

test('an open span takes the place of the parent, and the state stays', () => {
  const open = { traceId, spanId: 'f'.repeat(16), sampled: true }
  expect(withTraceHeaders(['traceparent', good, 'tracestate', 'a=b'], open)).toEqual([
    ...['traceparent', `00-${traceId}-${'f'.repeat(16)}-01`],
    ...['tracestate', 'a=b'],
  ])
})

test('without an open span, a valid context or none is sent, and a state only with its own context', () => {
  fc.assert(
    fc.property(fc.option(anyText()), fc.option(fc.string()), (parent, state) => {
      const headers: string[] = []
      if (parent !== null) headers.push('traceparent', parent)
      if (state !== null) headers.push('tracestate', state)
      const sent = withTraceHeaders(headers, undefined)
      const valid = parseTraceParent(parent ?? undefined) === undefined ? [] : [parent]
      expect(headerValues(sent, 'traceparent')).toEqual(valid)
      expect(headerValues(sent, 'tracestate')).toEqual(valid.length === 0 || state === null ? [] : [state])
    }),
  )
})
