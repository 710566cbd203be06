import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { CacheRead } from '../../../src/cache/cache-read.ts'
import { headerValue } from '../../../src/http/headers/header-lines.ts'
import { pause } from '../../support/origin.ts'
import {
  type Harness,
  harness,
  type ReadOptions,
  readOf,
  response,
  rfcPolicy,
  safePolicy,
} from './cache-fixture.ts'

const text = 'leaf stem root '.repeat(400)
const json = ['Content-Type', 'application/json', 'Cache-Control', 'max-age=60']
const compression = { codings: ['br', 'gzip'], minBytes: 1024 } as const

const reading = (more: ReadOptions = {}): CacheRead =>
  readOf({ headers: { 'accept-encoding': 'gzip' }, tags: ['t'], ...more })

const codingOf = async ({ cache }: Harness, read: CacheRead): Promise<string | undefined> =>
  headerValue((await cache.response(read, async () => response(text, json))).headers, 'content-encoding')

/** Asks until a response is coded, or until it is clear that none will be. */
const untilCoded = async (
  room: Harness,
  read: CacheRead,
  tries = Number.POSITIVE_INFINITY,
): Promise<string | undefined> => {
  for (let left = tries; left > 0; left -= 1) {
    const coding = await codingOf(room, read)
    if (coding !== undefined) return coding
    await pause(2)
  }
  return undefined
}

/** Waits until this number of forms was made, stored or not. */
const made = ({ events }: Harness, forms: number): Promise<void> =>
  expect.poll(() => events.filter(({ kind }) => kind === 'compressed').length).toBe(forms)

describe('coded forms', () => {
  test('have their own text of the header', async () => {
    const room = harness({ compression })
    for (let i = 0; i < 3; i += 1) await codingOf(room, reading({ headers: {} }))
    await untilCoded(room, reading())
    const hits = [1, 2, 3].map(() => room.cache.response(reading(), async () => response('never')))
    const heads = (await Promise.all(hits)).map(({ headText }) => headText?.text)
    for (const head of heads.filter((text) => text !== undefined))
      expect(head).toContain('Content-Encoding: gzip')
    expect(heads[2]).toBeDefined()
  })

  test('count in the bytes of their response, and are removed with it', async () => {
    const room = harness({ compression })
    await codingOf(room, reading({ headers: {} }))
    const uncoded = room.cache.stats().bytes
    expect(await untilCoded(room, reading())).toBe('gzip')
    const reply = await room.cache.response(reading(), async () => response('never'))
    const form = reply.content as Buffer
    expect(gunzipSync(form).toString()).toBe(text)
    expect(room.cache.stats().bytes).toBeGreaterThanOrEqual(uncoded + form.length)
    const bytes = Buffer.byteLength(text)
    expect(room.events.filter(({ kind }) => kind === 'compressed')).toEqual([
      { kind: 'compressed', coding: 'gzip', bytes, saved: bytes - form.length },
    ])
    expect(room.cache.stats().entries).toBe(1)
    expect(room.cache.invalidate(['t'])).toBe(1)
    expect(room.cache.stats().bytes).toBe(0)
  })

  test('one that is being made when its response is invalidated is discarded', async () => {
    const room = harness({ compression })
    await codingOf(room, reading({ headers: {} }))
    void codingOf(room, reading())
    room.cache.invalidate(['t'])
    await made(room, 1)
    expect(room.cache.stats()).toEqual({ entries: 0, bytes: 0, tags: 0 })
  })

  test('one of an older content is never served for a newer one', async () => {
    const room = harness({ compression })
    await codingOf(room, reading({ headers: {} }))
    const older = codingOf(room, reading())
    room.cache.invalidate(['t'])
    const newer = text.replaceAll('leaf', 'twig')
    await room.cache.response(reading({ headers: {} }), async () => response(newer, json))
    expect(await older).toBe('gzip')
    expect(await untilCoded(room, reading())).toBe('gzip')
    const reply = await room.cache.response(reading(), async () => response('never'))
    expect(gunzipSync(reply.content as Buffer).toString()).toBe(newer)
  })

  test('a validated response replaces the previous one', async () => {
    const room = harness({ compression })
    await room.cache.response(reading(), async () => response(text, [...json, 'ETag', '"1"']))
    room.clock.advance(61_000)
    const reply = await room.cache.response(reading(), async () => response('', ['ETag', '"1"'], 304))
    expect(reply.outcome).toBe('revalidated')
    expect(room.cache.stats().entries).toBe(1)
  })

  test('one that is being made during a soft purge is stored, as stale as its response', async () => {
    const policy = safePolicy({ staleWhileRevalidateMs: 10_000 })
    const room = harness({ compression })
    const lasting = ['Content-Type', 'application/json']
    const ask = () => room.cache.response(reading({ policy }), async () => response(text, lasting))
    await ask()
    await ask()
    room.cache.purge({ selector: { kind: 'all' }, mode: 'soft', dryRun: false })
    await made(room, 1)
    const reply = await ask()
    expect(reply.outcome).toBe('stale')
    expect(headerValue(reply.headers, 'content-encoding')).toBe('gzip')
  })

  test('one that was served before a soft purge is served as stale after it', async () => {
    const policy = safePolicy({ staleWhileRevalidateMs: 10_000 })
    const room = harness({ compression })
    const read = () => reading({ policy })
    await room.cache.response(read(), async () => response(text, json))
    expect(await untilCoded(room, read())).toBe('gzip')
    room.cache.purge({ selector: { kind: 'all' }, mode: 'soft', dryRun: false })
    const reply = await room.cache.response(read(), async () => response(text, json))
    expect(reply.outcome).toBe('stale')
    expect(headerValue(reply.headers, 'cache-status')).toMatch(/ttl=(?:0|-\d+)(?:;|$)/)
    expect(headerValue(reply.headers, 'content-encoding')).toBe('gzip')
  })

  test('are not stored where they would not fit beside their response', async () => {
    const probe = harness({ compression })
    await codingOf(probe, reading({ headers: {} }))
    const room = harness({ compression, maxBytes: probe.cache.stats().bytes + 10 })
    await codingOf(room, reading({ headers: {} }))
    expect(await codingOf(room, reading())).toBe('gzip')
    expect(await codingOf(room, reading())).toBeUndefined()
    await made(room, 1)
    expect(await codingOf(room, reading({ headers: {} }))).toBeUndefined()
    expect(room.cache.stats()).toEqual(probe.cache.stats())
  })

  test.each<[string, ReadOptions]>([
    ['what belongs to one caller', { partition: 'credential', policy: safePolicy({ scope: 'credential' }) }],
    ['a reader who forbids it', { headers: { 'accept-encoding': 'gzip', 'cache-control': 'no-transform' } }],
  ])('are not given of %s', async (_, more) => {
    const room = harness({ compression })
    expect(await untilCoded(room, reading(more), 20)).toBeUndefined()
  })

  test.each<[string, ReadOptions]>([
    [
      'what belongs to one caller, where the service allows it',
      { partition: 'credential', policy: safePolicy({ scope: 'credential' }), compresses: true },
    ],
    ['what rfc-shared-cache keeps', { policy: rfcPolicy }],
  ])('are given of %s', async (_, more) => {
    const room = harness({ compression })
    expect([await codingOf(room, reading(more)), await codingOf(room, reading(more))]).toEqual([
      'gzip',
      'gzip',
    ])
  })

  test('readers that wait for one response wait for one compression', async () => {
    const room = harness({ compression })
    const codings = await Promise.all(Array.from({ length: 100 }, () => codingOf(room, reading())))
    expect(new Set(codings)).toEqual(new Set(['gzip']))
    await made(room, 1)
  })

  test('a reader is not kept waiting where too much is compressed already', async () => {
    const room = harness({ compression })
    const targets = Array.from({ length: 20 }, (_, i) => `/a${i}`)
    const codings = await Promise.all(targets.map((target) => codingOf(room, reading({ target }))))
    expect(codings.filter((coding) => coding === 'gzip').length).toBeGreaterThan(0)
    expect(codings.filter((coding) => coding === undefined).length).toBeGreaterThan(0)
  })

  test('are not made where none are configured', async () => {
    const room = harness()
    expect(await untilCoded(room, reading(), 20)).toBeUndefined()
    const reply = await room.cache.response(reading(), async () => response('never'))
    expect(headerValue(reply.headers, 'vary')).toBeUndefined()
  })

  test('a response with Vary: Accept-Encoding alone has one variant', async () => {
    const room = harness({ compression })
    const varying = [...json, 'Vary', 'Accept-Encoding']
    for (const coding of ['gzip', 'br', 'identity']) {
      const read = reading({ headers: { 'accept-encoding': coding } })
      await room.cache.response(read, async () => response(text, varying))
    }
    expect(room.cache.stats().entries).toBe(1)
    expect(room.events.filter(({ kind }) => kind === 'forwarded')).toHaveLength(1)
  })
})
