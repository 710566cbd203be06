import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OpenService, startOpenService } from './open-service.ts'

let service: OpenService
beforeAll(async () => {
  service = await startOpenService()
})
afterAll(() => service.close())

const final = 'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok'

const respondWith = (interim: string): void => {
  service.origin.script = (_, wire) => wire.write(interim + final)
}

const hints = (...lines: string[]): string => ['HTTP/1.1 103 Early Hints', ...lines, '', ''].join('\r\n')
const processing = 'HTTP/1.1 102 Processing\r\n\r\n'

// RFC 9110 §15.2
test.each([
  ['102', processing, /^HTTP\/1\.1 102 Processing\r\n\r\nHTTP\/1\.1 200/],
  [
    '103 with a link',
    hints('Link: </a.css>; rel=preload'),
    /^HTTP\/1\.1 103 .*\r\nLink: <\/a\.css>; rel=preload\r\n\r\nHTTP\/1\.1 200/,
  ],
  [
    '103 with other fields',
    hints('Link: </a>; rel=preload', 'X-More: 1'),
    /^HTTP\/1\.1 103 [\s\S]*X-More: 1\r\n\r\nHTTP\/1\.1 200/i,
  ],
  [
    'two links in one line',
    hints('Link: </a>; rel=preload, </b>; rel=preload'),
    /^HTTP\/1\.1 103 [\s\S]*<\/a>[\s\S]*<\/b>[\s\S]*HTTP\/1\.1 200/,
  ],
  [
    'several',
    processing + processing + hints('Link: </a>; rel=preload'),
    /^(?:HTTP\/1\.1 10[23][\s\S]*){3}HTTP\/1\.1 200/,
  ],
])(
  '%s goes to the client that asked, before the response, with the cache and past it',
  async (name, interim, expected) => {
    respondWith(interim)
    const path = `/${encodeURIComponent(name)}`
    expect(await service.ask([`GET ${path} HTTP/1.1`])).toMatch(expected)
    const hit = await service.ask([`GET ${path} HTTP/1.1`])
    expect(hit).toMatch(/^HTTP\/1\.1 200[\s\S]*trellis; hit/)
    expect(hit).not.toMatch(/preload|x-more/i)
    expect(await service.ask([`POST ${path} HTTP/1.1`, 'Content-Length: 1'], 'x')).toMatch(expected)
  },
)

test.each([
  ['a link that is none', hints('Link: nonsense')],
  ['hints without a link', hints('X-More: 1')],
  ['a status that nobody knows', 'HTTP/1.1 177 Whatever\r\nX-More: 1\r\n\r\n'],
])('%s is dropped, and the response comes', async (name, interim) => {
  respondWith(interim)
  expect(await service.ask([`GET /dropped/${encodeURIComponent(name)} HTTP/1.1`])).toMatch(/^HTTP\/1\.1 200 /)
})

test('a client of HTTP/1.0 gets only the final response', async () => {
  respondWith(processing)
  expect(await service.ask(['GET /old HTTP/1.0'])).toMatch(/^HTTP\/1\.1 200 /)
})

test('of an upstream that never stops sending them, a client gets at most sixteen', async () => {
  respondWith(processing.repeat(100))
  const reply = await service.ask(['GET /storm HTTP/1.1'])
  expect(reply.split('102 Processing')).toHaveLength(17)
  expect(reply).toContain('HTTP/1.1 200')
})
