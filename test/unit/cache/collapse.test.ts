import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import {
  cacheStatusOf,
  harness,
  readOf,
  response,
  rfcPolicy,
  scriptedForward,
  settle,
  textOf,
} from './cache-fixture.ts'

test('two hundred readers of one key make one forward', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const answers = Array.from({ length: 200 }, () => cache.answer(readOf(), forward))
  await settle()
  expect(calls).toHaveLength(1)
  calls[0]?.answer(response('one'))
  const done = await Promise.all(answers)
  expect(done.map((answer) => answer.outcome).filter((outcome) => outcome === 'collapsed')).toHaveLength(199)
  expect(new Set(await Promise.all(done.map(textOf)))).toEqual(new Set(['one']))
  expect(cacheStatusOf(done[1] ?? (await cache.answer(readOf(), forward)))).toBe(
    'trellis; fwd=uri-miss; ttl=60; collapsed',
  )
  expect(calls).toHaveLength(1)
})

test('the leader may go: those who wait get the answer', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const leader = new AbortController()
  const left = cache.answer(readOf({ signal: leader.signal }), forward)
  const waiting = cache.answer(readOf(), forward)
  leader.abort()
  await expect(left).rejects.toMatchObject({ code: 'client_gone' })
  expect(calls[0]?.signal.aborted).toBe(false)
  calls[0]?.answer(response('one'))
  expect(await textOf(await waiting)).toBe('one')
})

test('a forward that nobody waits for any more is aborted, and nobody joins it', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const readers = [new AbortController(), new AbortController()]
  const left = readers.map(({ signal }) => cache.answer(readOf({ signal }), forward))
  for (const reader of readers) reader.abort()
  await Promise.allSettled(left)
  expect(calls[0]?.signal.aborted).toBe(true)
  const next = cache.answer(readOf(), forward)
  expect(calls).toHaveLength(2)
  calls[1]?.answer(response('two'))
  expect(await textOf(await next)).toBe('two')
})

test('an answer for one reader is given to nobody else, and the others go side by side', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const answers = Array.from({ length: 5 }, () => cache.answer(readOf(), forward))
  await settle()
  expect(calls).toHaveLength(1)
  calls[0]?.answer(response('mine 0', ['Set-Cookie', 'session=0']))
  await settle()
  expect(calls).toHaveLength(5)
  calls.slice(1).forEach((call, i) => {
    call.answer(response(`mine ${i + 1}`, ['Set-Cookie', `session=${i + 1}`]))
  })
  const texts = await Promise.all((await Promise.all(answers)).map(textOf))
  expect([...texts].sort()).toEqual(['mine 0', 'mine 1', 'mine 2', 'mine 3', 'mine 4'])
  const later = [cache.answer(readOf(), forward), cache.answer(readOf(), forward)]
  await settle()
  expect(calls).toHaveLength(7)
  for (const call of calls.slice(5)) call.answer(response('x'))
  await Promise.all(later)
})

test('an answer for one reader is dropped when that reader is gone', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const leader = new AbortController()
  const left = cache.answer(readOf({ signal: leader.signal }), forward)
  const waiting = cache.answer(readOf(), forward)
  leader.abort()
  await expect(left).rejects.toMatchObject({ code: 'client_gone' })
  const content = Readable.from([Buffer.from('private')])
  calls[0]?.answer({ kind: 'response', status: 200, fields: ['Cache-Control', 'private'], content })
  await settle()
  expect(content.destroyed).toBe(true)
  calls[1]?.answer(response('public'))
  expect(await textOf(await waiting)).toBe('public')
})

test('a failure is shared by those who waited, not passed on from one to the next', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const answers = Array.from({ length: 50 }, () => cache.answer(readOf(), forward))
  await settle()
  calls[0]?.fail(new Error('down'))
  const done = await Promise.allSettled(answers)
  expect(done.every((one) => one.status === 'rejected')).toBe(true)
  expect(calls).toHaveLength(1)
})

test('a server error is shared by those who waited and not kept', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const answers = Array.from({ length: 50 }, () => cache.answer(readOf(), forward))
  await settle()
  calls[0]?.answer(response('maintenance', ['Cache-Control', 'no-store, private'], 503))
  const done = await Promise.all(answers)
  expect(done.every((answer) => answer.status === 503)).toBe(true)
  expect(calls).toHaveLength(1)
  expect(cache.stats().entries).toBe(0)
})

test('readers whose selecting fields differ get answers of their own, each asked once', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const languages = ['de', 'en', 'de', 'en', 'de', 'en']
  const answers = languages.map((language) =>
    cache.answer(readOf({ fields: { 'accept-language': language } }), forward),
  )
  await settle()
  expect(calls).toHaveLength(1)
  calls[0]?.answer(response('Hallo', ['Vary', 'Accept-Language']))
  await settle()
  expect(calls).toHaveLength(2)
  calls[1]?.answer(response('Hello', ['Vary', 'Accept-Language']))
  const texts = await Promise.all((await Promise.all(answers)).map(textOf))
  expect(texts).toEqual(['Hallo', 'Hello', 'Hallo', 'Hello', 'Hallo', 'Hello'])
})

test('a content larger than allowed streams to the one who asked, whole, and is not kept', async () => {
  const { cache } = harness({ maxEntryBytes: 10 })
  const { forward, calls } = scriptedForward()
  const answers = [cache.answer(readOf(), forward), cache.answer(readOf(), forward)]
  await settle()
  const large = (): Readable => Readable.from(['12345', '67890', 'abcde'].map((text) => Buffer.from(text)))
  calls[0]?.answer({ kind: 'response', status: 200, fields: [], content: large() })
  await settle()
  calls[1]?.answer({ kind: 'response', status: 200, fields: [], content: large() })
  const done = await Promise.all(answers)
  expect(await Promise.all(done.map(textOf))).toEqual(['1234567890abcde', '1234567890abcde'])
  expect(cacheStatusOf(done[0] ?? (await cache.answer(readOf(), forward)))).toContain('detail=too-large')
  expect(cache.stats().entries).toBe(0)
})

test.each([
  [
    'breaks off',
    Readable.from(
      (async function* () {
        yield Buffer.from('12345')
        throw new Error('reset')
      })(),
    ),
    [],
  ],
  ['is shorter than its length', Readable.from([Buffer.from('12345')]), ['Content-Length', '10']],
])('a content that %s is an error and not kept', async (_, content, fields) => {
  const { cache } = harness()
  await expect(
    cache.answer(readOf(), async () => ({ kind: 'response', status: 200, fields, content })),
  ).rejects.toThrow()
  expect(cache.stats().entries).toBe(0)
})

test('what is fresh for nobody else is asked for by each', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const answers = [0, 1].map(() => cache.answer(readOf({ policy: rfcPolicy }), forward))
  await settle()
  calls[0]?.answer(response('one', ['Cache-Control', 'max-age=0', 'ETag', '"a"']))
  await settle()
  expect(calls).toHaveLength(2)
  calls[1]?.answer(response('two', ['Cache-Control', 'max-age=0', 'ETag', '"b"']))
  expect(await Promise.all((await Promise.all(answers)).map(textOf))).toEqual(['one', 'two'])
})
