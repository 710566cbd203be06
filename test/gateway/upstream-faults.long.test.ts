import type { LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { GatewayError } from '../../src/errors.ts'
import type { UpstreamOptions } from '../../src/upstream/options.ts'
import { keyPair, pem } from '../support/certificates.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'
import { noTls, request, shortTimes, upstreamOf } from '../unit/upstream/upstream-of.ts'

const originOf = async (script?: Script, tls?: string): Promise<Origin> => {
  const options = tls === undefined ? {} : { tls: keyPair(tls) }
  const origin = await startOrigin(script, options)
  onTestFinished(() => origin.close())
  return origin
}

const once: Partial<UpstreamOptions> = { retry: { attempts: 1, budget: 0 } }
/** Only for what no response ends: a busy machine takes as long over one that comes. */
const notForLong: Partial<UpstreamOptions> = { ...once, timeouts: shortTimes }

/** The code of the error that forwarding a request, or reading its response, ends with. */
const outcome = async (
  origin: string,
  options: Partial<UpstreamOptions> = once,
): Promise<string | number> => {
  const { upstream } = upstreamOf([origin], options)
  try {
    const response = await upstream.request(request())
    if (response.content instanceof Readable) await buffer(response.content)
    return response.status
  } catch (error) {
    return error instanceof GatewayError ? error.code : `not a GatewayError: ${error}`
  } finally {
    expect(upstream.snapshot()).toMatchObject({ inFlight: 0, queued: 0, targets: [{ outstanding: 0 }] })
  }
}

const head = (headers: string, status = 200) => `HTTP/1.1 ${status} OK\r\n${headers}\r\n`

const faults: [string, Script, string | number][] = [
  [
    'a reset that comes together with content that ends with its connection',
    (_, wire) => {
      wire.write(`${head('Connection: close\r\n')}{"a":`)
      wire.reset()
    },
    'upstream_broken',
  ],
  ['a reset before the head', (_, wire) => wire.reset(), 'upstream_broken'],
  ['an end before the head', (_, wire) => wire.end(), 'upstream_broken'],
  [
    'a reset in the middle of the head',
    async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Le')
      await pause(10)
      wire.reset()
    },
    'upstream_broken',
  ],
  [
    'an end in the middle of the head',
    (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Le')
      wire.end()
    },
    'upstream_broken',
  ],
  ['no answer', () => {}, 'upstream_timeout'],
  [
    'a head that trickles for ever',
    async (_, wire) => {
      for (let i = 0; i < 60 && !wire.socket.destroyed; i += 1) {
        wire.write(i === 0 ? 'HTTP/1.1 200 OK\r\n' : `X-${i}: y\r\n`)
        await pause(10)
      }
    },
    'upstream_timeout',
  ],
  [
    'interim responses for ever',
    async (_, wire) => {
      for (let i = 0; i < 60 && !wire.socket.destroyed; i += 1) {
        wire.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
        await pause(10)
      }
    },
    'upstream_timeout',
  ],
  [
    'more than a thousand interim responses',
    (_, wire) => {
      wire.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(1_001))
      wire.respond({})
    },
    'upstream_broken',
  ],
  [
    'an interim response, then the answer',
    (_, wire) => {
      wire.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
      wire.respond({ status: 201 })
    },
    201,
  ],
  [
    'a switch of protocol nobody asked for',
    (_, wire) => wire.write(head('Connection: upgrade\r\nUpgrade: x\r\n', 101)),
    'upstream_broken',
  ],
  [
    'a switch of protocol that names none',
    (_, wire) => wire.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
    'upstream_broken',
  ],
  [
    'content that stops half way',
    (_, wire) => wire.write(`${head('Content-Length: 10\r\n')}12345`),
    'upstream_timeout',
  ],
  [
    'less content than promised, then an end',
    (_, wire) => {
      wire.write(`${head('Content-Length: 10\r\n')}12345`)
      wire.end()
    },
    'upstream_broken',
  ],
  [
    'less content than promised on a connection to be closed',
    (_, wire) => {
      wire.write(`${head('Connection: close\r\nContent-Length: 10\r\n')}12345`)
      wire.end()
    },
    'upstream_broken',
  ],
  [
    'a reset in the middle of the content',
    async (_, wire) => {
      wire.write(`${head('Content-Length: 10\r\n')}12345`)
      await pause(10)
      wire.reset()
    },
    'upstream_broken',
  ],
  [
    'chunks without the last one',
    (_, wire) => {
      wire.write(`${head('Transfer-Encoding: chunked\r\n')}5\r\n12345\r\n`)
      wire.end()
    },
    'upstream_broken',
  ],
  [
    'a chunk size that is none',
    (_, wire) => wire.write(`${head('Transfer-Encoding: chunked\r\n')}0x5\r\n12345\r\n0\r\n\r\n`),
    'upstream_broken',
  ],
  [
    'a length and chunks',
    (_, wire) => wire.write(`${head('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n')}0\r\n\r\n`),
    'upstream_broken',
  ],
  [
    'two lengths',
    (_, wire) => wire.write(`${head('Content-Length: 5\r\nContent-Length: 6\r\n')}12345`),
    'upstream_broken',
  ],
  ['no HTTP', (_, wire) => wire.write('SSH-2.0-OpenSSH_9.2\r\n'), 'upstream_broken'],
  ['a space before a colon', (_, wire) => wire.write(head('Content-Length : 0\r\n')), 200],
  [
    'a NUL in a value',
    (_, wire) => wire.write(head('X-A: a\0b\r\nContent-Length: 0\r\n')),
    'upstream_broken',
  ],
  [
    'a head larger than 64 KiB',
    (_, wire) => wire.write(head(`X-A: ${'a'.repeat(66_000)}\r\nContent-Length: 0\r\n`)),
    'upstream_broken',
  ],
  [
    'content up to the end of the connection',
    (_, wire) => {
      wire.write(`${head('Connection: close\r\n')}12345`)
      wire.end()
    },
    200,
  ],
  [
    'a status of 999',
    (_, wire) => wire.write('HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n'),
    'upstream_broken',
  ],
  ['a 500', (_, wire) => wire.respond({ status: 500 }), 500],
  ['a 503', (_, wire) => wire.respond({ status: 503, headers: { 'Retry-After': '600' } }), 503],
]

test.each(faults)('%s', async (_, script, expected) => {
  const origin = await originOf(script)
  const options = expected === 'upstream_timeout' ? notForLong : once
  expect(await outcome(origin.origin, options)).toBe(expected)
  await origin.until(() => origin.open <= 1)
})

test('a closed port is upstream_unreachable', async () => {
  const origin = await originOf()
  await origin.close()
  expect(await outcome(origin.origin)).toBe('upstream_unreachable')
})

test('a name that does not resolve is upstream_unreachable, or too slow where the resolver is', async () => {
  expect(await outcome('http://no-such-host.invalid', notForLong)).toMatch(/upstream_(unreachable|timeout)/)
})

test('a handshake that never ends is upstream_timeout, in the time set', async () => {
  // Speaks TCP and nothing else, so that the TLS handshake waits.
  const silent = await originOf(() => {})
  const started = performance.now()
  // The others are so long that it cannot have been one of them.
  const timeouts = { connectMs: 300, headersMs: 150_000, idleMs: 150_000, totalMs: 150_000 }
  expect(await outcome(silent.origin.replace('http:', 'https:'), { ...once, timeouts })).toBe(
    'upstream_timeout',
  )
  expect(performance.now() - started).toBeLessThan(100_000)
  await silent.until(() => silent.open <= 1)
})

test.each([
  ['good', 200],
  ['expired', 'upstream_unreachable'],
  ['wrong-name', 'upstream_unreachable'],
] as const)('a TLS target with a certificate that is %s: %s', async (certificate, expected) => {
  const origin = await originOf(undefined, certificate)
  expect(await outcome(origin.origin, { ...once, tls: { ...noTls, ca: pem('ca.pem') } })).toBe(expected)
})

test('a TLS target whose CA is unknown, and one without TLS, are upstream_unreachable', async () => {
  const unknown = await originOf(undefined, 'good')
  expect(await outcome(unknown.origin)).toBe('upstream_unreachable')
  const plain = await originOf((_, wire) => wire.end())
  expect(await outcome(plain.origin.replace('http:', 'https:'), notForLong)).toMatch(
    /upstream_(unreachable|timeout)/,
  )
})

test('a total timeout of more than half a second ends a request at its time, too', async () => {
  const origin = await originOf(() => {})
  const timeouts = { connectMs: 300, headersMs: 150_000, idleMs: 150_000, totalMs: 900 }
  const began = performance.now()
  expect(await outcome(origin.origin, { ...once, timeouts })).toBe('upstream_timeout')
  expect(performance.now() - began).toBeGreaterThanOrEqual(899)
  expect(performance.now() - began).toBeLessThan(100_000)
})

describe('data that arrived while the process was suspended is not late', () => {
  /** As on a busy machine, or while a large heap is collected. */
  const standStill = (): void => {
    const until = performance.now() + 2 * shortTimes.connectMs
    while (performance.now() < until);
  }

  test('a connection', async () => {
    const origin = await originOf()
    const lookup: LookupFunction = (_name, { all }, callback) => {
      // Behind this turn, in which the connection is begun.
      process.nextTick(standStill)
      if (all === true) callback(null, [{ address: '127.0.0.1', family: 4 }])
      else callback(null, '127.0.0.1', 4)
    }
    const { upstream } = upstreamOf([`http://upstream.test:${origin.port}`], notForLong, lookup)
    expect((await upstream.request(request())).status).toBe(200)
  })

  test('a head', async () => {
    const origin = await originOf((_, wire, count) => {
      wire.respond({})
      if (count === 2) standStill()
    })
    const { upstream } = upstreamOf([origin.origin], notForLong)
    await upstream.request(request())
    expect((await upstream.request(request())).status).toBe(200)
  })

  test('content', async () => {
    const rest = createLatch()
    const origin = await originOf(async (_, wire) => {
      wire.write(`${head('Content-Length: 4\r\n')}ab`)
      await rest.opened
      wire.write('cd')
      standStill()
    })
    const { upstream } = upstreamOf([origin.origin], notForLong)
    const { content } = await upstream.request(request())
    const whole = buffer(content as Readable)
    rest.open()
    expect(String(await whole)).toBe('abcd')
  })
})
