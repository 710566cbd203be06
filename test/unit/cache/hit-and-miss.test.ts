import { expect, test } from 'vitest'
import { headerValue } from '../../../src/http/headers/header-lines.ts'
import { cacheStatusOf, harness, readOf, response, rfcPolicy, safePolicy, textOf } from './cache-fixture.ts'

test('a miss is stored, and the next read is a hit without a promise', async () => {
  const { cache, clock } = harness()
  let forwards = 0
  const forward = async () => {
    forwards += 1
    return response('one', ['Content-Type', 'text/plain', 'Transfer-Encoding', 'chunked'])
  }
  const miss = await cache.response(readOf(), forward)
  expect(miss.outcome).toBe('miss')
  expect(cacheStatusOf(miss)).toBe('trellis; fwd=uri-miss; fwd-status=200; ttl=60; stored')
  expect(headerValue(miss.headers, 'age')).toBeUndefined()
  clock.advance(12_000)
  const hit = cache.response(readOf(), forward)
  expect(hit).not.toBeInstanceOf(Promise)
  const reply = await hit
  expect(await textOf(reply)).toBe('one')
  expect(reply.outcome).toBe('hit')
  expect(cacheStatusOf(reply)).toBe('trellis; hit; ttl=48')
  expect(headerValue(reply.headers, 'age')).toBe('12')
  expect(headerValue(reply.headers, 'content-length')).toBe('3')
  expect(headerValue(reply.headers, 'transfer-encoding')).toBeUndefined()
  expect(forwards).toBe(1)
})

test('a stored response is not used past its ttl', async () => {
  const { cache, clock } = harness()
  let version = 0
  const forward = async () => response(`v${++version}`)
  await cache.response(readOf(), forward)
  clock.advance(59_999)
  expect(await textOf(await cache.response(readOf(), forward))).toBe('v1')
  clock.advance(1)
  const again = await cache.response(readOf(), forward)
  expect(await textOf(again)).toBe('v2')
  expect(cacheStatusOf(again)).toBe('trellis; fwd=stale; fwd-status=200; ttl=60; stored')
})

test('a response without an entity tag gets a strong one, and the client that has it gets 304', async () => {
  const { cache } = harness()
  const forward = async () => response('one', ['Content-Type', 'text/plain'])
  const first = await cache.response(readOf(), forward)
  const tag = headerValue(first.headers, 'etag') ?? ''
  expect(tag).toMatch(/^"[\w-]{24}"$/)
  const second = await cache.response(readOf({ headers: { 'if-none-match': tag } }), forward)
  expect(second.status).toBe(304)
  expect(second.content).toBeUndefined()
  expect(headerValue(second.headers, 'etag')).toBe(tag)
  expect(headerValue(second.headers, 'content-length')).toBeUndefined()
})

test('HEAD is answered from a stored GET, without content and with its length', async () => {
  const { cache } = harness()
  const forward = async () => response('one')
  await cache.response(readOf(), forward)
  const head = await cache.response(readOf({ method: 'HEAD' }), forward)
  expect(head.outcome).toBe('hit')
  expect(head.content).toBeUndefined()
  expect(headerValue(head.headers, 'content-length')).toBe('3')
})

test('the response to a HEAD is not stored', async () => {
  const { cache } = harness()
  const forward = async () => ({ ...response(''), content: undefined })
  const head = await cache.response(readOf({ method: 'HEAD' }), forward)
  expect(cacheStatusOf(head)).toBe('trellis; fwd=uri-miss; fwd-status=200; detail=method')
  expect(cache.stats().entries).toBe(0)
})

test.each([
  ['private', ['Cache-Control', 'private, max-age=60'], 'private'],
  ['no-store', ['Cache-Control', 'no-store'], 'no-store'],
  ['Set-Cookie', ['Set-Cookie', 'a=b'], 'set-cookie'],
  ['a new nonce', ['X-WP-Nonce', 'abc'], 'token'],
  ['Vary: *', ['Vary', 'Accept, *'], 'vary-any'],
])('%s is never kept', async (_, headers, reason) => {
  const { cache } = harness()
  const reply = await cache.response(readOf(), async () => response('mine', headers))
  expect(cacheStatusOf(reply)).toBe(`trellis; fwd=uri-miss; fwd-status=200; detail=${reason}`)
  expect(cache.stats()).toEqual({ entries: 0, bytes: 0, tags: 0 })
})

test.each([
  [404, 0, false],
  [404, 1000, true],
  [410, 1000, true],
  [400, 1000, false],
  [401, 1000, false],
  [413, 1000, false],
  [500, 1000, false],
])('status %i under a negative ttl of %i ms: kept %s', async (status, negativeTtlMs, kept) => {
  const { cache } = harness()
  const policy = safePolicy({ negativeTtlMs })
  await cache.response(readOf({ policy }), async () => response('no', [], status))
  expect(cache.stats().entries).toBe(kept ? 1 : 0)
})

test('variants are kept apart by the selecting headers', async () => {
  const { cache } = harness()
  const asking = (language: string) => readOf({ headers: { 'accept-language': language } })
  const forward = (text: string) => async () => response(text, ['Vary', 'Accept-Language'])
  await cache.response(asking('de'), forward('Hallo'))
  const miss = await cache.response(asking('en'), forward('Hello'))
  expect(cacheStatusOf(miss)).toContain('fwd=vary-miss')
  const never = async () => response('wrong')
  expect(await textOf(await cache.response(asking('de'), never))).toBe('Hallo')
  expect(await textOf(await cache.response(asking('en'), never))).toBe('Hello')
})

test('a stale response is validated with its own validators, and a 304 updates its headers', async () => {
  const { cache, clock } = harness()
  const policy = rfcPolicy
  const lastModified = 'Wed, 01 Jan 2025 00:00:00 GMT'
  const first = response('one', [
    'ETag',
    '"a"',
    'Last-Modified',
    lastModified,
    'Cache-Control',
    'max-age=5',
    'X',
    '1',
  ])
  await cache.response(readOf({ policy }), async () => first)
  clock.advance(6000)
  let asked: Readonly<Record<string, string>> = {}
  const validated = await cache.response(readOf({ policy }), async ({ headers }) => {
    asked = headers
    return { status: 304, headers: ['ETag', '"a"', 'X', '2'], content: undefined }
  })
  expect(asked).toEqual({ 'if-none-match': '"a"', 'if-modified-since': lastModified })
  expect(validated.outcome).toBe('revalidated')
  expect(headerValue(validated.headers, 'x')).toBe('2')
  expect(await textOf(validated)).toBe('one')
  const hit = await cache.response(readOf({ policy }), async () => response('wrong'))
  expect(hit.outcome).toBe('hit')
  expect(headerValue(hit.headers, 'x')).toBe('2')
})

test('a range is served from the stored response', async () => {
  const { cache } = harness()
  await cache.response(readOf(), async () => response('0123456789'))
  const part = await cache.response(readOf({ headers: { range: 'bytes=2-4' } }), async () =>
    response('wrong'),
  )
  expect(part.status).toBe(206)
  expect(await textOf(part)).toBe('234')
  expect(headerValue(part.headers, 'content-range')).toBe('bytes 2-4/10')
})
