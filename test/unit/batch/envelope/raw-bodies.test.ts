import fc from 'fast-check'
import { expect, test } from 'vitest'
import { rawBodies } from '../../../../src/batch/envelope/read-envelope.ts'
import type { BatchItem } from '../../../../src/batch/item.ts'
import { cost } from '../../../support/cost.ts'
import { batchOf, wholeResponse } from '../batch-of.ts'

test.each([
  ['no requests', '{}', []],
  ['requests that are no list', '{"requests":{"body":{}}}', []],
  ['an item without a body', '{"requests":[{"path":"/"}]}', [undefined]],
  [
    'items that are no objects',
    '{"requests":[1,"x",null,[],{"body":{"a":1}}]}',
    [undefined, undefined, undefined, undefined, '{"a":1}'],
  ],
  [
    'spaces everywhere',
    ' { "requests" : [ { "body" : { "a" : 1 } , "path" : "/" } , { } ] } ',
    ['{ "a" : 1 }', undefined],
  ],
  ['the last of repeated names', '{"requests":[],"requests":[{"body":{"a":1},"body":{"a":2}}]}', ['{"a":2}']],
  ['names with escapes', '{"req\\u0075ests":[{"b\\u006fdy":{"a":"}]\\"{"}}]}', ['{"a":"}]\\"{"}']],
  ['a text that ends in a backslash', '{"requests":[{"path":"\\\\","body":{"a":"\\\\"}}]}', ['{"a":"\\\\"}']],
])('finds the bodies of %s', (_, text, bodies) => {
  expect(rawBodies(text)).toEqual(bodies)
})

test('whatever the JSON, each body is the text that parses to the parsed body', () => {
  const entry = fc.oneof(
    fc.json({ maxDepth: 3 }),
    fc.json({ maxDepth: 3 }).map((body) => `{"path":"/x","body":${body},"z":[1]}`),
  )
  const space = fc.constantFrom('', ' ', '\n\t')
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 6 }), space, (entries, gap) => {
      const text = `${gap}{"validation":"normal",${gap}"requests"${gap}:[${gap}${entries.join(`${gap},${gap}`)}${gap}]}${gap}`
      const parsed = (JSON.parse(text) as { requests: unknown[] }).requests
      const bodies = rawBodies(text)
      expect(bodies).toHaveLength(parsed.length)
      for (const [i, item] of parsed.entries()) {
        const has =
          typeof item === 'object' && item !== null && !Array.isArray(item) && Object.hasOwn(item, 'body')
        const body = bodies[i]
        if (has) expect(JSON.parse(body as string)).toEqual((item as { body: unknown }).body)
        else expect(body).toBeUndefined()
      }
    }),
  )
})

test('an item is sent with its body as the client wrote it', async () => {
  const seen: BatchItem[] = []
  const batch = batchOf({
    handleItem: async (item) => {
      seen.push(item)
      return { status: 200, headers: [], content: Buffer.from('{}') }
    },
  })
  const body = '{"meta":{"big":9223372036854775807,"zero":-0},"title":"\\u00e4"}'
  const text = `{"requests":[{"path":"/site/v2/posts/1","method":"PUT","body":${body}},{"path":"/site/v2/posts","body":[]}]}`
  await wholeResponse(batch, JSON.parse(text), new AbortController().signal, text)
  expect(seen.map(({ content }) => content?.toString())).toEqual([body, undefined])
})

test('a hundred thousand brackets and quotes take no time', () => {
  const body = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)},"b":"${'\\"'.repeat(50_000)}"}`
  const text = `{"requests":[{"body":${body}}]}`
  expect(rawBodies(text)).toEqual([body])
  expect(cost(() => rawBodies(text), 500)).toBeLessThan(500)
})
