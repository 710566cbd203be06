import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CacheResponse } from '../../src/cache/cache-read.ts'
import type { Encodings } from '../../src/cache/respond/encodings.ts'
import { Responder } from '../../src/cache/respond/responder.ts'
import { createStoredResponse } from '../../src/cache/store/stored-response.ts'
import { match } from '../../src/exchange/admit/match.ts'
import { validate } from '../../src/exchange/admit/validate.ts'
import type { ExchangeEvent } from '../../src/exchange/events.ts'
import { refusal } from '../../src/exchange/finish/finish.ts'
import type { Service } from '../../src/exchange/service.ts'
import { unlimited } from '../../src/http/bounds/byte-budget.ts'
import { isConditional } from '../../src/http/conditional/preconditions.ts'
import type { HeaderLines, RequestHeaders } from '../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../src/http/message.ts'
import { createTargetMemo } from '../../src/service/target-memo.ts'
import { received, siteService } from '../exchange/exchange-of.ts'
import { readOf, safePolicy, startOfTest } from '../unit/cache/cache-fixture.ts'

// What a busy hit remembers (the response of this second, the canonical form of a target) is never another decision than
// the one that is made when nothing is remembered.

const uncodedOnly: Pick<Encodings, 'formFor'> = {
  formFor: (stored) => stored,
}

const tag = '"one"'
const stored = (status: number, headers: readonly string[]) =>
  createStoredResponse({
    key: readOf().key,
    head: { status, headers },
    content: Buffer.from('0123456789'),
    selecting: { sentHeader: () => undefined },
    times: {
      requested: { now: startOfTest, monotonic: 0 },
      received: { now: startOfTest, monotonic: 0 },
    },
    policy: safePolicy(),
    upstreamTag: undefined,
    order: 1,
    codedFrom: Number.POSITIVE_INFINITY,
    forms: [],
  })

const someDates = ['Thu, 01 Jan 2026 00:00:00 GMT', 'Fri, 01 Jan 1999 00:00:00 GMT', 'x'] as const
const dates = fc.constantFrom(...someDates)
const tags = fc.constantFrom(
  tag,
  tag,
  tag,
  `W/${tag}`,
  `W/W/${tag}`,
  '"two"',
  `"two", ${tag}`,
  '*',
  'one',
  '',
)
const perhaps = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { freq: 2, nil: undefined })
// Mostly readers who share a form: one that is answered like them and should not be has to meet one of them.
const readers = fc.record({
  'if-none-match': perhaps(tags),
  'if-match': perhaps(tags),
  'if-modified-since': perhaps(dates),
  'if-unmodified-since': fc.constantFrom(undefined, undefined, undefined, ...someDates),
  range: fc.constantFrom(undefined, undefined, 'bytes=0-3', 'bytes=90-', 'bytes=1-2,4-5', 'x'),
  'if-range': perhaps(fc.oneof(tags, dates)),
})

const storedResponses = fc
  .record({
    status: fc.constantFrom(200, 200, 200, 203, 204, 404),
    tag: fc.constantFrom(
      [],
      ['ETag', tag],
      ['ETag', tag],
      ['ETag', tag],
      ['ETag', `W/${tag}`],
      ['ETag', 'one'],
      ['ETag', tag, 'ETag', '"two"'],
    ),
    modified: fc.constantFrom([], ['Last-Modified', 'Thu, 01 Jan 2026 00:00:00 GMT']),
  })
  .map(({ status, tag: line, modified }) => stored(status, [...line, ...modified]))

const asks = fc.record({
  method: fc.constantFrom('GET' as const, 'HEAD' as const),
  headers: readers as fc.Arbitrary<RequestHeaders>,
  ageMs: fc.constantFrom(0, 500, 999, 1000),
})

const boundary = (response: GatewayResponse): string => {
  const text = JSON.stringify([response.status, response.headers, String(response.content)])
  // Made anew for each response in parts.
  return text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'boundary')
}

const linesOf = (headers: HeaderLines): string =>
  headers.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')

/** Nothing is compressed here, so every hit is there at once. */
const hitOf = (responder: Responder, ...asked: Parameters<Responder['hit']>): CacheResponse => {
  const response = responder.hit(...asked)
  if (response instanceof Promise) throw new TypeError('a hit that waits')
  return response
}

describe('memories of the hit path', () => {
  test('a shared response equals the one that each reader would get alone', () => {
    fc.assert(
      fc.property(storedResponses, fc.array(asks, { minLength: 10, maxLength: 20 }), (response, sequence) => {
        const warm = new Responder(uncodedOnly)
        for (const { method, headers, ageMs } of sequence) {
          const read = readOf({ method, headers })
          const at = { now: startOfTest + ageMs, monotonic: ageMs }
          const cold = new Responder(uncodedOnly)
          expect(boundary(hitOf(warm, response, read, ageMs, at))).toBe(
            boundary(hitOf(cold, { ...response, prepared: -1 }, read, ageMs, at)),
          )
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('from the second hit on the text of the header is ready, and its lines are those of the response', () => {
    fc.assert(
      fc.property(fc.array(asks, { minLength: 10, maxLength: 20 }), (sequence) => {
        const responder = new Responder(uncodedOnly)
        const response = stored(200, ['ETag', tag, 'Date', 'Thu, 01 Jan 2026 00:00:00 GMT'])
        let hits = 0
        let elapsed = 0
        for (const { method, headers, ageMs } of sequence) {
          elapsed += ageMs
          const at = { now: startOfTest + elapsed, monotonic: elapsed }
          const reply = hitOf(responder, response, readOf({ method, headers }), elapsed, at)
          const isPlain = headers['range'] === undefined && !isConditional(headers)
          hits += isPlain ? 1 : 0
          const mayBeLate = hits < 2 || !isPlain
          const text = { of: reply.headers, begin: undefined, text: linesOf(reply.headers) }
          expect([text, ...(mayBeLate ? [undefined] : [])]).toContainEqual(reply.headText)
        }
      }),
      { numRuns: 200 },
    )
  })

  test('a changed copy of a stored response does not serve the prepared hits of the original', () => {
    const responses = new Responder(uncodedOnly)
    const response = stored(200, ['ETag', tag, 'X-Of', 'record'])
    const at = { now: startOfTest, monotonic: 0 }
    const ask = (of: typeof response) => hitOf(responses, of, readOf(), 0, at)
    ask(response)
    expect(ask(response)).toBe(ask(response))
    const copy = { ...response, headers: ['ETag', '"two"', 'X-Of', 'copy'] }
    expect([ask(copy), ask(copy), ask(copy)].map(({ headers }) => headers[3])).toEqual([
      'copy',
      'copy',
      'copy',
    ])
    expect(ask(response).headers[3]).toBe('record')
  })

  test.each([
    [tag, `W/${tag}`],
    [`W/${tag}`, tag],
  ])('readers share the 304 to %s and to %s', (given, asked) => {
    const responses = new Responder(uncodedOnly)
    const response = stored(200, ['ETag', given])
    const at = { now: startOfTest, monotonic: 0 }
    const ask = (wanted: string) =>
      hitOf(responses, response, readOf({ headers: { 'if-none-match': wanted } }), 0, at)
    ask(given)
    expect(ask(given).status).toBe(304)
    expect(ask(asked)).toBe(ask(given))
  })

  test('a remembered target is validated or refused as one that is new', () => {
    const targets = fc.constantFrom(
      '/site/v2/posts?per_page=0',
      '/site/v2/posts?per_page=5',
      '/site/v2/posts?per_page=5&context=edit&page=0',
      '/site/v2/settings?_fields=a&x[',
      '/site/v2/posts/7?context=none',
      '/site/v2/posts?_jsonp=a%20b',
      '/site/v2/posts?_method=DELETE',
    )
    const requests = fc.record({
      target: targets,
      method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'DELETE'),
      // Mostly none: a refusal is remembered, and recalled, where nothing but the target counts.
      headers: fc.constantFrom<RequestHeaders>(
        ...Array.from({ length: 8 }, () => ({})),
        { authorization: 'Bearer a' },
        { cookie: '_ga=1' },
        { cookie: 'wordpress_logged_in_1=a' },
        { 'x-wp-nonce': 'n' },
        { 'x-api-key': 'k' },
        { 'content-type': 'application/json' },
        { 'content-type': 'text/plain' },
        { 'x-http-method-override': 'PUT' },
        { 'x-http-method-override': 'GET' },
      ),
      content: fc.constantFrom(
        undefined,
        undefined,
        undefined,
        Buffer.from('{"per_page":5}'),
        Buffer.from('{'),
      ),
    })
    const decide = async (service: Service, { target, ...more }: { target: string; method: string }) => {
      const events: ExchangeEvent[] = []
      const report = (event: ExchangeEvent) => events.push(event)
      try {
        const exchange = received(target, more, service)
        const ready = await validate(match(exchange), unlimited, report)
        const response =
          'response' in ready
            ? refusal({ report }, exchange, ready.code, ready.response)
            : {
                status: 200,
                headers: [ready.target, ready.method, ready.record.route, JSON.stringify(ready.arguments)],
                content: undefined,
              }
        const refusals = events.filter(({ kind }) => kind === 'request-refused')
        return JSON.stringify([response.status, response.headers, String(response.content), refusals])
      } catch (error) {
        return String(error)
      }
    }
    return fc.assert(
      fc.asyncProperty(fc.array(requests, { minLength: 4, maxLength: 16 }), async (sequence) => {
        const warm = siteService()
        for (const request of sequence)
          expect(await decide(warm, request)).toBe(await decide(siteService(), request))
      }),
      { numRuns: 300 },
    )
  })

  test('a memo with evictions returns only the last value of a key', () => {
    const targets = fc.array(fc.tuple(fc.integer({ min: 0, max: 12 }), fc.boolean()), { maxLength: 60 })
    fc.assert(
      fc.property(targets, (steps) => {
        const memo = createTargetMemo(6)
        const model = new Map<string, object>()
        for (const [which, remembers] of steps) {
          const target = `/${which}`
          if (remembers) {
            const recalled = { target } as unknown as Parameters<typeof memo.remember>[1]
            memo.remember(target, recalled)
            model.set(target, recalled)
          } else {
            const found = memo.recall(target)
            expect(found === undefined || found === model.get(target)).toBe(true)
          }
        }
      }),
    )
  })
})
