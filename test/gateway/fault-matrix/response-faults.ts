import type { Script } from '../../support/origin.ts'
import { badGateway, type Fault, gatewayTimeout, passes, type Seen, scripted } from './fault.ts'
import { good } from './good-response.ts'

const response =
  (status: number, content: string | Buffer, headers: Readonly<Record<string, string>> = {}): Script =>
  (_, wire) =>
    wire.respond({ status, headers: { 'Content-Type': 'application/json', ...headers }, content })

/** Passed on as it is, but nothing that can stand within the response of a batch. */
const odd: Seen = ['200', '200', '502', '200', '200']

const seenConnections = new WeakMap<object, number>()

/** Responses that are HTTP and are not what was asked for, and connections that are not kept. */
export const responseFaults: readonly Fault[] = [
  scripted('sends JSON that breaks off', response(200, '{"id":1,"slug":"a'), odd),
  scripted('sends nothing as JSON', response(200, ''), passes(200)),
  scripted(
    'sends JSON that is no UTF-8',
    response(200, Buffer.from('{"a":"\xff\xfe"}', 'latin1')),
    passes(200),
  ),
  scripted(
    'sends a page of HTML with 200',
    response(200, '<h1>Error establishing a database connection</h1>', { 'Content-Type': 'text/html' }),
    odd,
  ),
  scripted('sends a page of HTML as JSON', response(200, '<b>Warning</b>: mysqli: {"id":1}'), odd),
  scripted(
    'sets a cookie on every answer',
    response(200, '{"mine":1}', { 'Set-Cookie': 'session=1' }),
    passes(200),
  ),
  scripted(
    'sends a 304 unasked',
    (_, wire) => wire.write('HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'),
    badGateway,
  ),
  scripted('sends a 206 unasked', response(206, '{}', { 'Content-Range': 'bytes 0-1/10' }), badGateway),
  scripted('sends a 416 unasked', response(416, '{}', { 'Content-Range': 'bytes */10' }), passes(416)),
  scripted(
    'redirects to the same URL',
    (request, wire) => wire.respond({ status: 302, headers: { Location: request.target } }),
    passes(302),
    'redirects are never followed',
  ),
  scripted(
    'redirects to an inner address',
    response(302, '', { Location: 'http://169.254.169.254/' }),
    passes(302),
    'redirects are never followed',
  ),
  scripted('answers 429', response(429, '{}', { 'Retry-After': '60' }), passes(429)),
  scripted('answers 500', response(500, '{"code":"x"}'), passes(500)),
  scripted('answers 502', response(502, ''), passes(502)),
  scripted('answers 503', response(503, '{}'), passes(503)),
  scripted('answers 503 and wants a minute', response(503, '{}', { 'Retry-After': '60' }), passes(503)),
  scripted(
    'answers 503 and asks to come back at once',
    response(503, '{}', { 'Retry-After': '0' }),
    passes(503),
    'a read is asked for once more',
  ),
  scripted('answers 504', response(504, ''), passes(504)),
  scripted(
    'closes every connection behind its answer',
    (request, wire) => {
      good(request, wire, 0)
      wire.end()
    },
    passes(200),
  ),
  scripted(
    'resets every connection that is used again',
    (request, wire) => {
      const used = seenConnections.get(wire.socket) ?? 0
      seenConnections.set(wire.socket, used + 1)
      if (used > 0) wire.reset()
      else good(request, wire, 0)
    },
    ['200', '502', '200|502|200 502', '200', '200|502'],
    'a read is sent again, a write is not, because its outcome is unknown',
  ),
  {
    name: 'answers 413 before the content has come',
    trouble: {
      kind: 'script',
      early: true,
      script: (_, wire) => {
        wire.write('HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}')
        wire.end()
      },
    },
    seen: passes(413),
  },
  {
    name: 'resets the connection before the content has come',
    trouble: { kind: 'script', early: true, script: (_, wire) => wire.reset() },
    seen: badGateway,
  },
  {
    name: 'does not read the content',
    trouble: { kind: 'script', early: true, script: (_, wire) => void wire.socket.pause() },
    seen: gatewayTimeout,
  },
]
