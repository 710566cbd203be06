import { PassThrough, Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../../src/errors.ts'
import {
  cacheStatusOf,
  harness,
  type PendingForward,
  readOf,
  response,
  rfcPolicy,
  scriptedForward,
  settle,
  textOf,
} from './cache-fixture.ts'

test('two hundred readers of one key send one request to the upstream', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const responses = Array.from({ length: 200 }, () => cache.response(readOf(), forward))
  await settle()
  expect(calls).toHaveLength(1)
  calls[0]?.response(response('one'))
  const done = await Promise.all(responses)
  expect(done.map((response) => response.outcome).filter((outcome) => outcome === 'collapsed')).toHaveLength(
    199,
  )
  expect(new Set(await Promise.all(done.map(textOf)))).toEqual(new Set(['one']))
  expect(cacheStatusOf(done[1] ?? (await cache.response(readOf(), forward)))).toBe(
    'trellis; fwd=uri-miss; ttl=60; collapsed',
  )
  expect(calls).toHaveLength(1)
})

test('waiting readers get the response when the reader that started the fetch disconnects', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const leader = new AbortController()
  const left = cache.response(readOf({ signal: leader.signal }), forward)
  const waiting = cache.response(readOf(), forward)
  leader.abort()
  await expect(left).rejects.toMatchObject({ code: 'client_gone' })
  expect(calls[0]?.signal.aborted).toBe(false)
  calls[0]?.response(response('one'))
  expect(await textOf(await waiting)).toBe('one')
})

test('a fetch is aborted when its last reader disconnects, and later readers do not join it', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const readers = [new AbortController(), new AbortController()]
  const left = readers.map(({ signal }) => cache.response(readOf({ signal }), forward))
  for (const reader of readers) reader.abort()
  await Promise.allSettled(left)
  expect(calls[0]?.signal.aborted).toBe(true)
  const next = cache.response(readOf(), forward)
  expect(calls).toHaveLength(2)
  calls[1]?.response(response('two'))
  expect(await textOf(await next)).toBe('two')
})

test('a response for one reader is not shared, and the other readers then fetch side by side', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const responses = Array.from({ length: 5 }, () => cache.response(readOf(), forward))
  await settle()
  expect(calls).toHaveLength(1)
  calls[0]?.response(response('mine 0', ['Set-Cookie', 'session=0']))
  await settle()
  expect(calls).toHaveLength(5)
  calls.slice(1).forEach((call, i) => {
    call.response(response(`mine ${i + 1}`, ['Set-Cookie', `session=${i + 1}`]))
  })
  const texts = await Promise.all((await Promise.all(responses)).map(textOf))
  expect([...texts].sort()).toEqual(['mine 0', 'mine 1', 'mine 2', 'mine 3', 'mine 4'])
  const later = [cache.response(readOf(), forward), cache.response(readOf(), forward)]
  await settle()
  expect(calls).toHaveLength(7)
  for (const call of calls.slice(5)) call.response(response('x'))
  await Promise.all(later)
})

test('a response for one reader is discarded when that reader has disconnected', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const leader = new AbortController()
  const left = cache.response(readOf({ signal: leader.signal }), forward)
  const waiting = cache.response(readOf(), forward)
  leader.abort()
  await expect(left).rejects.toMatchObject({ code: 'client_gone' })
  const content = Readable.from([Buffer.from('private')])
  calls[0]?.response({ status: 200, headers: ['Cache-Control', 'private'], content })
  await settle()
  expect(content.destroyed).toBe(true)
  calls[1]?.response(response('public'))
  expect(await textOf(await waiting)).toBe('public')
})

test('a failure is shared by all waiting readers instead of each repeating the request', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const responses = Array.from({ length: 50 }, () => cache.response(readOf(), forward))
  await settle()
  calls[0]?.fail(new Error('down'))
  const done = await Promise.allSettled(responses)
  expect(done.every((one) => one.status === 'rejected')).toBe(true)
  expect(calls).toHaveLength(1)
})

test('a server error is shared by all waiting readers and not stored', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const responses = Array.from({ length: 50 }, () => cache.response(readOf(), forward))
  await settle()
  calls[0]?.response(response('maintenance', ['Cache-Control', 'no-store, private'], 503))
  const done = await Promise.all(responses)
  expect(done.every((response) => response.status === 503)).toBe(true)
  expect(calls).toHaveLength(1)
  expect(cache.stats().entries).toBe(0)
})

test('readers whose selecting headers differ get their own variants, each fetched once', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const languages = ['de', 'en', 'de', 'en', 'de', 'en']
  const responses = languages.map((language) =>
    cache.response(readOf({ headers: { 'accept-language': language } }), forward),
  )
  await settle()
  expect(calls).toHaveLength(1)
  calls[0]?.response(response('Hallo', ['Vary', 'Accept-Language']))
  await settle()
  expect(calls).toHaveLength(2)
  calls[1]?.response(response('Hello', ['Vary', 'Accept-Language']))
  const texts = await Promise.all((await Promise.all(responses)).map(textOf))
  expect(texts).toEqual(['Hallo', 'Hello', 'Hallo', 'Hello', 'Hallo', 'Hello'])
})

describe('where nothing is stored that shows by what a response varies', () => {
  const languages = ['de', 'en', 'fr', 'it']
  const vary = ['Vary', 'Accept-Language']

  /** Ten readers of each language, which share one fetch: of the first language. */
  const readersOfLanguages = async () => {
    const { cache } = harness()
    const { forward, calls } = scriptedForward()
    cache.quarantine(['t'], 1000)
    const readers = Array.from({ length: 10 }, () => languages).flat()
    const responses = readers.map((language) =>
      cache.response(readOf({ tags: ['t'], headers: { 'accept-language': language } }), forward),
    )
    await settle()
    expect(calls).toHaveLength(1)
    return { calls, readers, texts: async () => Promise.all((await Promise.all(responses)).map(textOf)) }
  }

  test('readers join the fetch of their own variant once the first response has shown it', async () => {
    const { calls, readers, texts } = await readersOfLanguages()
    calls[0]?.response(response('de', vary))
    await settle()
    expect(calls).toHaveLength(languages.length)
    for (const [at, language] of languages.entries()) calls[at]?.response(response(language, vary))
    expect(await texts()).toEqual(readers)
    expect(calls).toHaveLength(languages.length)
  })

  test('so they do while the content of the first response is still coming', async () => {
    const { calls, readers, texts } = await readersOfLanguages()
    const content = new PassThrough()
    const long = 'de'.padEnd(80_000)
    calls[0]?.response({ status: 200, headers: [...vary, 'Content-Length', `${long.length}`], content })
    await settle()
    expect(calls).toHaveLength(languages.length)
    for (const [at, language] of languages.entries()) calls[at]?.response(response(language, vary))
    content.end(long)
    expect((await texts()).map((text) => text.trimEnd())).toEqual(readers)
    expect(calls).toHaveLength(languages.length)
  })
})

test('a content that is too large to store streams to its reader completely and is not stored', async () => {
  const { cache } = harness({ maxEntryBytes: 10 })
  const { forward, calls } = scriptedForward()
  const responses = [cache.response(readOf(), forward), cache.response(readOf(), forward)]
  await settle()
  const large = (): Readable => Readable.from(['12345', '67890', 'abcde'].map((text) => Buffer.from(text)))
  calls[0]?.response({ status: 200, headers: [], content: large() })
  await settle()
  calls[1]?.response({ status: 200, headers: [], content: large() })
  const done = await Promise.all(responses)
  expect(await Promise.all(done.map(textOf))).toEqual(['1234567890abcde', '1234567890abcde'])
  expect(cacheStatusOf(done[0] ?? (await cache.response(readOf(), forward)))).toContain('detail=too-large')
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
])('a content that %s is an error and not stored', async (_, content, headers) => {
  const { cache } = harness()
  await expect(cache.response(readOf(), async () => ({ status: 200, headers, content }))).rejects.toThrow()
  expect(cache.stats().entries).toBe(0)
})

test('a response that is stale at once is not shared: each reader fetches its own', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const responses = [0, 1].map(() => cache.response(readOf({ policy: rfcPolicy }), forward))
  await settle()
  calls[0]?.response(response('one', ['Cache-Control', 'max-age=0', 'ETag', '"a"']))
  await settle()
  expect(calls).toHaveLength(2)
  calls[1]?.response(response('two', ['Cache-Control', 'max-age=0', 'ETag', '"b"']))
  expect(await Promise.all((await Promise.all(responses)).map(textOf))).toEqual(['one', 'two'])
})

const from = (browser: string) => readOf({ headers: { 'user-agent': browser } })

/** Answers each upstream request at once; `isHealthy` decides how, by the number of the request from 0. */
const failing = async (
  calls: readonly PendingForward[],
  isHealthy: (at: number) => boolean,
  fail: (call: PendingForward) => void,
): Promise<void> => {
  for (let at = 0; at < 10; at += 1) {
    await settle()
    const call = calls[at]
    if (call === undefined) return
    if (isHealthy(at)) call.response(response('fine'))
    else fail(call)
  }
}

const failures: readonly (readonly [string, (call: PendingForward) => void])[] = [
  ['is answered with a server error', (call) => call.response(response('boom', [], 500))],
  ['breaks the connection', (call) => call.fail(new GatewayError('upstream_broken'))],
  ['is not answered in time', (call) => call.fail(new GatewayError('upstream_timeout'))],
  ['is refused as too large', (call) => call.response(response('too large', [], 431))],
  ['is refused as malformed', (call) => call.response(response('malformed', [], 400))],
  ['gets an encoding it does not take', (call) => call.response(response('none', [], 406))],
]

test.each(failures)(
  'when a request %s, the other readers share the response to one more request',
  async (_, fail) => {
    const { cache } = harness()
    const { forward, calls } = scriptedForward()
    const first = cache.response(readOf({ headers: { 'x-boom': '1' } }), forward)
    const others = Array.from({ length: 100 }, (_, at) => cache.response(from(`browser ${at}`), forward))
    await Promise.all([failing(calls, (at) => at > 0, fail), Promise.allSettled([first])])
    const done = await Promise.all(others)
    expect(new Set(await Promise.all(done.map(textOf)))).toEqual(new Set(['fine']))
    expect(calls).toHaveLength(2)
    expect(await textOf(await cache.response(from('later'), forward))).toBe('fine')
  },
)

test.each(failures.slice(0, 3))(
  'when each request %s, a hundred different readers send two requests to the upstream',
  async (_, fail) => {
    const { cache } = harness()
    const { forward, calls } = scriptedForward()
    const responses = Array.from({ length: 100 }, (_, at) => cache.response(from(`browser ${at}`), forward))
    const settled = Promise.allSettled(responses)
    await failing(calls, () => false, fail)
    for (const one of await settled) {
      if (one.status === 'fulfilled') expect(one.value.status).toBe(500)
      else expect(one.reason).toBeInstanceOf(GatewayError)
    }
    expect(calls).toHaveLength(2)
  },
)

test('waiting readers send no second request to an upstream that cannot be reached', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const responses = Array.from({ length: 20 }, (_, at) => cache.response(from(`browser ${at}`), forward))
  const settled = Promise.allSettled(responses)
  await failing(
    calls,
    () => false,
    (call) => call.fail(new GatewayError('upstream_unreachable')),
  )
  expect((await settled).every(({ status }) => status === 'rejected')).toBe(true)
  expect(calls).toHaveLength(1)
})

test('readers with the same request headers as the failed request share its failure', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const same = Array.from({ length: 5 }, () => cache.response(from('one'), forward))
  const others = [from('other'), readOf()].map((read) => cache.response(read, forward))
  await failing(
    calls,
    (at) => at === 1,
    (call) => call.response(response('boom', [], 500)),
  )
  expect((await Promise.all(same)).map(({ status }) => status)).toEqual([500, 500, 500, 500, 500])
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200])
  expect(calls).toHaveLength(2)
})

test('a content that always breaks off is fetched twice, however many readers wait', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const responses = Array.from({ length: 50 }, (_, at) =>
    cache.response(readOf({ headers: { 'user-agent': `${at}`, 'if-none-match': '"x"' } }), forward),
  )
  const settled = Promise.allSettled(responses)
  const breaking = (): Readable =>
    Readable.from(
      (async function* () {
        yield Buffer.alloc(70_000)
        await settle()
        throw new Error('reset')
      })(),
    )
  const headers = ['Content-Length', '90000']
  for (let at = 0; at < 6; at += 1) {
    await settle()
    calls[at]?.response({ status: 200, headers, content: breaking() })
    for (let turn = 0; turn < 5; turn += 1) await settle()
  }
  expect((await settled).every(({ status }) => status === 'rejected')).toBe(true)
  expect(calls).toHaveLength(2)
})

test('a server error in response to a cookie is not shared with other callers', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const callers = ['a', 'b', 'c']
  const responses = callers.map((cookie) =>
    cache.response(readOf({ policy: rfcPolicy, headers: { cookie } }), forward),
  )
  for (let turn = 0; turn < 4; turn += 1) {
    await settle()
    for (const [at, call] of calls.entries()) call.response(response(`error ${at}`, [], 500))
  }
  const texts = await Promise.all((await Promise.all(responses)).map(textOf))
  expect(new Set(texts).size).toBe(3)
})

test('after a refused request, later readers of its target still share one fetch', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const refused = cache.response(readOf({ headers: { 'x-large': 'x' } }), forward)
  calls[0]?.response(response('too large', [], 431))
  expect((await refused).status).toBe(431)
  const later = [cache.response(readOf(), forward), cache.response(readOf(), forward)]
  await settle()
  expect(calls).toHaveLength(2)
  calls[1]?.response(response('fine'))
  expect(await Promise.all((await Promise.all(later)).map(textOf))).toEqual(['fine', 'fine'])
})

test('a reader gets what the target cannot give from no request but its own', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const read = (agent: string) =>
    cache.response(
      readOf({
        headers: { 'user-agent': agent },
        readability: (_, content) => (content?.toString() === 'Are you human?' ? 'unreadable' : 'readable'),
      }),
      forward,
    )
  const [first, second, human] = [read('bot 1'), read('bot 2'), read('human')]
  calls[0]?.response(response('Are you human?'))
  await settle()
  calls[1]?.response(response('Are you human?'))
  await settle()
  expect(calls).toHaveLength(3)
  calls[2]?.response(response('posts'))
  expect(await Promise.all([first, second, human].map(async (one) => textOf(await one)))).toEqual([
    'Are you human?',
    'Are you human?',
    'posts',
  ])
})
