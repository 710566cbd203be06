import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { HeaderLines } from '../../../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../../../src/http/message.ts'
import { headText } from '../../../../src/http/response-text.ts'
import { sendResponse } from '../../../../src/server/send/send-response.ts'
import { type HttpServer, startHttpServer } from '../../../support/http-server.ts'

const keepAliveTimeout = 7_000
let server: HttpServer
let response: GatewayResponse
let isDraining = false
beforeAll(async () => {
  const listener = (_incoming: IncomingMessage, outgoing: ServerResponse): void =>
    sendResponse(outgoing, response, {
      isDraining: () => isDraining,
      keepAliveLines: 'Connection: keep-alive\r\nKeep-Alive: timeout=7\r\n',
      broken: () => undefined,
    })
  server = await startHttpServer(listener, { keepAliveTimeout })
  server.server.on('checkContinue', listener)
})
afterAll(() => server.close())

/** All bytes of a connection; the last request asks for its end. */
const bytesFor = async (head: string): Promise<string> => {
  const socket = connect(Number(new URL(server.origin).port), '127.0.0.1')
  let received = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
  })
  socket.write(`${head}\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
  await once(socket, 'close')
  return received
}

const date = ['Date', 'Mon, 23 Nov 2026 16:05:16 GMT']
const whole = (content: string): HeaderLines => [
  'Content-Length',
  String(Buffer.byteLength(content)),
  ...date,
]

const name = fc.stringMatching(/^x-[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/)
const value = fc.stringMatching(/^[\t\x20-\x7e\x80-\xff]{0,20}$/)
const requestHead = fc
  .record({
    method: fc.constantFrom('GET', 'HEAD'),
    version: fc.constantFrom('1.1', '1.0'),
    connection: fc.constantFrom(undefined, 'close', 'keep-alive'),
    expect: fc.constantFrom(undefined, '100-continue'),
  })
  .map(({ method, version, connection, expect: expected }) =>
    [
      `${method} / HTTP/${version}`,
      'Host: a',
      ...(connection === undefined ? [] : [`Connection: ${connection}`]),
      ...(expected === undefined ? [] : [`Expect: ${expected}`]),
    ].join('\r\n'),
  )

describe('a head that was made before has the bytes that node:http writes', () => {
  test('for every request, status and list of headers', async () => {
    let made = 0
    await fc.assert(
      fc.asyncProperty(
        requestHead,
        fc.constantFrom(200, 304, 204, 206, 304, 404, 304, 599),
        fc.array(fc.tuple(name, value), { maxLength: 5 }),
        fc.string(),
        fc.boolean(),
        async (head, status, added, content, draining) => {
          const hasContent = status !== 204 && status !== 304
          const headers = [...(hasContent ? whole(content) : date), ...added.flat()]
          const body = Buffer.from(content)
          const text = headText(headers, status)
          if (text !== undefined) made += 1
          isDraining = draining
          response = { status, headers, content: body }
          const expected = await bytesFor(head)
          response = { status, headers, content: body, headText: text }
          expect(await bytesFor(head)).toBe(expected)
        },
      ),
      { numRuns: 300 },
    )
    isDraining = false
    // A status without content has no length, and node:http decides how its end is found.
    expect(made).toBeGreaterThan(150)
  })

  test('it is used', async () => {
    const headers = whole('a')
    response = {
      status: 200,
      headers,
      content: Buffer.from('a'),
      headText: { of: headers, begin: undefined, text: 'X-Ready: 1\r\n' },
    }
    expect(await bytesFor('GET / HTTP/1.1\r\nHost: a')).toContain('X-Ready: 1')
  })

  test('it is not used with the switch', async () => {
    vi.stubEnv('TRELLIS_HEADS_BY_NODE', '1')
    vi.resetModules()
    onTestFinished(() => void vi.unstubAllEnvs())
    const { sendResponse: sendByNode } = await import('../../../../src/server/send/send-response.ts')
    const headerLines = whole('a')
    const byNode = await startHttpServer((_incoming, outgoing) =>
      sendByNode(
        outgoing,
        {
          status: 200,
          headers: headerLines,
          content: Buffer.from('a'),
          headText: { of: headerLines, begin: undefined, text: 'X-Ready: 1\r\n' },
        },
        { isDraining: () => false, keepAliveLines: '', broken: () => undefined },
      ),
    )
    onTestFinished(() => byNode.close())
    const { headers } = await fetch(byNode.origin)
    expect([headers.get('content-length'), headers.get('x-ready')]).toEqual(['1', null])
  })

  test('it is not used once the headers have changed', async () => {
    const headers = whole('a')
    response = {
      status: 200,
      headers: [...headers],
      content: Buffer.from('a'),
      headText: headText(headers, 200),
    }
    response = { ...response, headText: { of: headers, begin: undefined, text: 'X-Ready: 1\r\n' } }
    expect(await bytesFor('GET / HTTP/1.1\r\nHost: a')).not.toContain('X-Ready: 1')
  })
})

describe('no text is made before the time', () => {
  test.each([
    ['a value with a line end', [...whole('a'), 'X-A', 'b\r\nX-B: c']],
    ['a value that becomes a line end in Latin-1', [...whole('a'), 'X-A', 'b\u010dX-B: c']],
    ['a name with a colon', [...whole('a'), 'X-A: b', 'c']],
    ['an empty name', [...whole('a'), '', 'c']],
    ['Connection', [...whole('a'), 'Connection', 'close']],
    ['Transfer-Encoding', [...whole('a'), 'Transfer-Encoding', 'chunked']],
    ['Trailer', [...whole('a'), 'Trailer', 'X-A']],
    ['no Date', ['Content-Length', '1']],
    ['no Content-Length', [...date]],
    ['two Content-Lengths', [...whole('a'), 'Content-Length', '1']],
  ])('%s', (_description, headers) => {
    expect(headText(headers, 200)).toBeUndefined()
  })
})
