import { gzipSync } from 'node:zlib'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../../support/origin.ts'
import { talk } from '../../support/talk.ts'

// An upstream that has been taken over, or is out of its mind, decides what its own responses say, and nothing more.

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      open: {
        contract: 'open',
        mount: '/open',
        upstream: {
          targets: [origin.origin],
          breaker: { failureRatio: 1, minRequests: 1000 },
        },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
})

const first = 'GET /open/x HTTP/1.1\r\nHost: a\r\n\r\n'
const second = 'GET /open/next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

/** The script answers the first target, the second one is answered plainly. */
const ask = async (script: Script): Promise<{ summary: string; text: string }> => {
  origin.script = (request, wire, count) =>
    request.target === '/next' ? wire.respond({ content: 'the next answer' }) : script(request, wire, count)
  const said = await talk(gateway.publicAddress, Buffer.from(first + second), {
    enough: '',
    silenceMs: 10_000,
  })
  const text = said.answers
    .map(
      ({ startLine, headers, content }) =>
        `${startLine}\n${headers.map((pair) => pair.join(': ')).join('\n')}\n${content}`,
    )
    .join('\n')
  return { summary: said.summary, text: text + said.stray }
}

const ok = (headers: string, content = ''): string => `HTTP/1.1 200 OK\r\n${headers}\r\n${content}`

describe('one request, one response', () => {
  test.each<[string, Script, string]>([
    [
      'a bare CR in a value',
      (_, wire) => wire.write(ok('X-A: a\rSet-Cookie: evil=1\r\nContent-Length: 0\r\n')),
      '502 200.',
    ],
    [
      'a bare LF in a value',
      (_, wire) => wire.write(ok('X-A: a\nSet-Cookie: evil=1\r\nContent-Length: 0\r\n')),
      '502 200.',
    ],
    ['NUL in a value', (_, wire) => wire.write(ok('X-A: a\0evil\r\nContent-Length: 0\r\n')), '502 200.'],
    ['a folded value', (_, wire) => wire.write(ok('X-A: a\r\n evil\r\nContent-Length: 0\r\n')), '502 200.'],
    ['a space in a name', (_, wire) => wire.write(ok('X A: evil\r\nContent-Length: 0\r\n')), '502 200.'],
    [
      'an invalid status',
      (_, wire) => wire.write('HTTP/1.1 2000 evil\r\nContent-Length: 0\r\n\r\n'),
      '502 200.',
    ],
    [
      'a version and a status that are none',
      (_, wire) => wire.write('HTTP/2.0 999 evil\r\nContent-Length: 0\r\n\r\n'),
      '502 200.',
    ],
    [
      'a length and chunks',
      (_, wire) => wire.write(ok('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\nevil')),
      '502 200.',
    ],
    [
      'two lengths',
      (_, wire) => wire.write(ok('Content-Length: 0\r\nContent-Length: 4\r\n', 'evil')),
      '502 200.',
    ],
    ['a length with a plus', (_, wire) => wire.write(ok('Content-Length: +4\r\n', 'evil')), '502 200.'],
    [
      'a second answer behind the first',
      (_, wire) => wire.write(ok('Content-Length: 2\r\n', `ok${ok('Content-Length: 4\r\n', 'evil')}`)),
      '200 200.',
    ],
    [
      'an answer behind a 204',
      (_, wire) => wire.write(`HTTP/1.1 204 No Content\r\n\r\n${ok('Content-Length: 4\r\n', 'evil')}`),
      '204 200.',
    ],
    [
      'more content than was promised',
      (_, wire) => wire.write(ok('Content-Length: 2\r\n', 'okevil')),
      '200 200.',
    ],
  ])('%s', async (_, script, summary) => {
    const said = await ask(script)
    expect(said.summary).toBe(summary)
    expect(said.text).not.toContain('evil')
    expect(said.text).toContain('the next answer')
  })

  test('headers of the connection end here, also those that Connection names', async () => {
    const said = await ask((_, wire) =>
      wire.write(
        ok(
          'Connection: keep-alive, X-Hop, Set-Cookie, Cache-Control\r\nKeep-Alive: timeout=9\r\nX-Hop: evil\r\nUpgrade: evil\r\n' +
            'Proxy-Authenticate: evil\r\nTrailer: X-T\r\nCache-Control: private\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n',
        ),
      ),
    )
    expect(said.summary).toBe('200 200.')
    expect(said.text).not.toContain('evil')
    expect(said.text).toMatch(/Cache-Control: private/)
    expect(said.text).toMatch(/Set-Cookie: a=1/)
  })

  test('trailers are not merged into the response', async () => {
    const said = await ask((_, wire) =>
      wire.write(
        ok(
          'Transfer-Encoding: chunked\r\n',
          '2\r\nok\r\n0\r\nSet-Cookie: evil=1\r\nCache-Control: max-age=60\r\n\r\n',
        ),
      ),
    )
    expect(said.summary).toBe('200 200.')
    expect(said.text).not.toContain('evil')
  })

  test('a response that breaks off is neither whole for the client nor kept', async () => {
    origin.script = async (_, wire) => {
      wire.write(ok('Cache-Control: max-age=60\r\nContent-Length: 10\r\n', 'half'))
      await pause(20)
      wire.reset()
    }
    const read = async (): Promise<string> => (await fetch(`${gateway.publicAddress}/open/half`)).text()
    await expect(
      read().then((text) => (text.length === 10 ? 'whole' : Promise.reject(new Error(text)))),
    ).rejects.toThrow()
    origin.script = (_, wire) => wire.respond({ content: 'whole now!' })
    expect(await read()).toBe('whole now!')
  })
})

describe('codings', () => {
  test('a compression bomb is forwarded unchanged', async () => {
    const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024))
    origin.script = (_, wire) =>
      wire.respond({ headers: { 'Content-Encoding': 'gzip', 'Cache-Control': 'max-age=60' }, content: bomb })
    const before = process.memoryUsage().rss
    const said = await talk(
      gateway.publicAddress,
      Buffer.from('GET /open/bomb HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n'),
      { enough: '', silenceMs: 10_000 },
    )
    expect(said.answers[0]?.content.equals(bomb)).toBe(true)
    expect(process.memoryUsage().rss - before).toBeLessThan(16 * 1024 * 1024)
  })

  test('content that does not match its coding is forwarded unchanged', async () => {
    origin.script = (_, wire) =>
      wire.respond({
        headers: { 'Content-Encoding': 'gzip', 'Cache-Control': 'max-age=60' },
        content: 'no gzip at all',
      })
    for (let i = 0; i < 2; i += 1) {
      const said = await talk(
        gateway.publicAddress,
        Buffer.from(
          'GET /open/lie HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n',
        ),
        { enough: '', silenceMs: 10_000 },
      )
      expect([said.summary, said.answers[0]?.content.toString()]).toEqual(['200.', 'no gzip at all'])
    }
  })
})
