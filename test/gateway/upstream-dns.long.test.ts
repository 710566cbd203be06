import type { LookupFunction } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { pause, startOrigin } from '../support/origin.ts'
import { request, upstreamOf } from '../unit/upstream/upstream-of.ts'

/** A name server of which the test says what it answers. */
const nameServer = (address: {
  now: string | undefined
}): { lookup: LookupFunction; asked: () => number } => {
  let asked = 0
  const lookup: LookupFunction = (name, options, callback) => {
    asked += 1
    const { now } = address
    if (now === undefined) {
      const error: NodeJS.ErrnoException = new Error(`getaddrinfo ENOTFOUND ${name}`)
      error.code = 'ENOTFOUND'
      callback(error, '', 4)
    } else if (options.all === true) callback(null, [{ address: now, family: 4 }])
    else callback(null, now, 4)
  }
  return { lookup, asked: () => asked }
}

/** Says on which address of the loopback network it was reached. */
const originOnAnyAddress = async () => {
  const origin = await startOrigin((_, wire) => wire.respond({ content: wire.socket.localAddress ?? '' }), {
    host: '0.0.0.0',
  })
  onTestFinished(() => origin.close())
  return origin
}

test('a changed address is followed as soon as the connections are old enough, without a failed request', async () => {
  const origin = await originOnAnyAddress()
  const address = { now: '127.0.0.1' as string | undefined }
  const { lookup, asked } = nameServer(address)
  const readerOf = (connectionMaxAgeMs: number) => {
    const { upstream } = upstreamOf([`http://upstream.test:${origin.port}`], { connectionMaxAgeMs }, lookup)
    return async () => String((await upstream.request(request())).content)
  }
  const [young, old] = [readerOf(600_000), readerOf(300)]
  for (const read of [young, old]) expect(await read()).toBe('127.0.0.1')
  const before = asked()
  address.now = '127.0.0.2'
  expect(await young()).toBe('127.0.0.1')
  while ((await old()) !== '127.0.0.2') await pause(20)
  expect(await old()).toBe('127.0.0.2')
  expect(asked()).toBeGreaterThan(before)
  expect(await young()).toBe('127.0.0.1')
  await origin.until(() => origin.open <= 3)
})

test('a connection that is never idle ends with a response when it is old enough, without a failed request', async () => {
  const origin = await startOrigin(
    async (_, wire) => {
      await pause(40)
      wire.respond({ content: wire.socket.localAddress ?? '' })
    },
    { host: '0.0.0.0' },
  )
  onTestFinished(() => origin.close())
  const address = { now: '127.0.0.1' as string | undefined }
  const { lookup } = nameServer(address)
  const { upstream } = upstreamOf(
    [`http://upstream.test:${origin.port}`],
    { connectionMaxAgeMs: 100 },
    lookup,
  )
  const responses: string[] = []
  for (let asked = 0; asked < 10; asked += 1) {
    responses.push(String((await upstream.request(request())).content))
    address.now = '127.0.0.2'
  }
  expect(responses[0]).toBe('127.0.0.1')
  // Two connections take turns, each busy when it reaches connections.maxAge.
  expect(responses.slice(-3)).toEqual(['127.0.0.2', '127.0.0.2', '127.0.0.2'])
})

test('a name that is gone for a while is upstream_unreachable, and found again by the next request', async () => {
  const origin = await originOnAnyAddress()
  const address: { now: string | undefined } = { now: undefined }
  const { lookup } = nameServer(address)
  const { upstream } = upstreamOf(
    [`http://upstream.test:${origin.port}`],
    { retry: { attempts: 1, budget: 0 } },
    lookup,
  )
  await expect(upstream.request(request())).rejects.toMatchObject({
    code: 'upstream_unreachable',
  })
  address.now = '127.0.0.3'
  expect(String((await upstream.request(request())).content)).toBe('127.0.0.3')
})

test('a name server that says nothing costs the connect timeout, not more', async () => {
  const { upstream } = upstreamOf(
    ['http://upstream.test'],
    // The others are so long that it cannot have been one of them.
    {
      retry: { attempts: 1, budget: 0 },
      timeouts: { connectMs: 300, headersMs: 150_000, idleMs: 150_000, totalMs: 150_000 },
    },
    () => {},
  )
  const began = performance.now()
  await expect(upstream.request(request())).rejects.toMatchObject({ code: 'upstream_timeout' })
  expect(performance.now() - began).toBeLessThan(100_000)
})

test('a name is looked for once at a time, however many wait for it, and also when none of them does any more', async () => {
  const origin = await originOnAnyAddress()
  let asked = 0
  let response: (() => void) | undefined
  const { upstream } = upstreamOf(
    [`http://upstream.test:${origin.port}`],
    {
      retry: { attempts: 1, budget: 0 },
      timeouts: { connectMs: 500, headersMs: 30_000, idleMs: 30_000, totalMs: 60_000 },
    },
    (_, __, callback) => {
      asked += 1
      const found = () => callback(null, [{ address: '127.0.0.4', family: 4 }])
      if (asked > 1) found()
      else response = found
    },
  )
  const ask = () => upstream.request(request())
  for (let round = 0; round < 2; round += 1) {
    for (const end of await Promise.allSettled(Array.from({ length: 8 }, ask))) {
      expect(end).toMatchObject({ status: 'rejected', reason: { code: 'upstream_timeout' } })
    }
  }
  expect(asked).toBe(1)
  // Those who have given up are passed over, and their results are dropped.
  response?.()
  const address = () => ask().then(({ content }) => String(content), String)
  await expect.poll(address).toBe('127.0.0.4')
  expect(asked).toBeGreaterThan(1)
})

test.each(['EAI_AGAIN', 'EAI_MEMORY', 'EAI_ADDRFAMILY', 'EIO'])(
  'whatever keeps a name from being found (%s), the upstream is unreachable',
  async (code) => {
    const { upstream } = upstreamOf(
      ['http://upstream.test'],
      { retry: { attempts: 1, budget: 0 } },
      (name, _, callback) =>
        callback(
          Object.assign(new Error(`getaddrinfo ${code} ${name}`), { code, syscall: 'getaddrinfo' }),
          '',
          4,
        ),
    )
    await expect(upstream.request(request())).rejects.toMatchObject({
      code: 'upstream_unreachable',
    })
  },
)
