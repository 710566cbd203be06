import { head, last, type RawCase, refused } from './raw-case.ts'

const inner = head('GET', '/open/inner')
const form = ['Content-Type: application/json']
const site = '/index.php/site-json/site/v2/posts'
const kept = '/kept/a'

/** Several requests on one connection, unread bodies, and requests for another protocol. */
export const sequences: readonly RawCase[] = [
  [
    'two in a row',
    head('GET', '/open/a') + head('GET', '/open/b') + last,
    '200 200 200.',
    ['GET /a', 'GET /b', 'GET /last'],
  ],
  ['fifty in a row', head('GET', kept).repeat(50) + last, `${'200 '.repeat(50)}200.`, ['GET /last']],
  [
    'a hit whose content is a request: it is no request',
    head('GET', kept, `Content-Length: ${inner.length}`) + inner + last,
    '200 200.',
    [`GET /kept/a ${JSON.stringify(inner)}`, 'GET /last'],
  ],
  [
    'a hit with chunks that hold a request',
    `${head('GET', kept, 'Transfer-Encoding: chunked')}${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n${last}`,
    '200 200.',
    [`GET /kept/a ${JSON.stringify(inner)}`, 'GET /last'],
  ],
  [
    'a refused GET with content: what it holds is no request',
    head('GET', site, ...form, `Content-Length: ${inner.length}`) + inner + last,
    '400 200.',
    ['GET /last'],
  ],
  [
    'an unknown route with content',
    head('POST', '/nowhere', `Content-Length: ${inner.length}`) + inner + last,
    '404 200.',
    ['GET /last'],
  ],
  [
    'a missing credential with content',
    head('POST', '/plants', ...form, `Content-Length: ${inner.length}`) + inner + last,
    '401 200.',
    ['GET /last'],
  ],
  [
    'content of an unsupported type',
    head('POST', site, 'Content-Type: text/plain', `Content-Length: ${inner.length}`) + inner + last,
    '415 200.',
    ['GET /last'],
  ],
  [
    'JSON that is none',
    `${head('POST', site, ...form, 'Content-Length: 3')}abc${last}`,
    '400 200.',
    ['GET /last'],
  ],
  refused(
    'content that says it is too large',
    head('POST', site, ...form, 'Content-Length: 9999999') + inner,
    413,
  ),
  [
    'content that turns out too large while it comes: its rest is skipped, and the next request is answered',
    `${head('POST', site, ...form, 'Transfer-Encoding: chunked')}100000\r\n${' '.repeat(1 << 20)}\r\n1\r\n \r\n0\r\n\r\n${last}`,
    '413 200.',
    ['GET /last'],
  ],
  refused(
    'content that turns out too large and goes on: what is in it is no request',
    `${head('POST', site, ...form, 'Transfer-Encoding: chunked')}100000\r\n${' '.repeat(1 << 20)}\r\n1000\r\n ${inner}`,
    413,
  ),
  ['nothing behind Connection: close counts', last + inner, '200.', ['GET /last']],
  ['nothing behind an HTTP/1.0 request counts', `GET /open/a HTTP/1.0\r\n\r\n${inner}`, '200.', ['GET /a']],
  [
    'HTTP/1.0 with keep-alive goes on',
    `GET /open/a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n${last}`,
    '200 200.',
    ['GET /a', 'GET /last'],
  ],
  [
    'an error ends the row, what was good before is answered',
    `${head('GET', '/open/a')}GET /open/b HTTP/1.1\r\nHost : b\r\n\r\n${last}`,
    '200 400.',
    ['GET /a'],
  ],
  [
    'Expect: 100-continue is answered before the content',
    `${head('POST', '/open/in', 'Expect: 100-continue', 'Content-Length: 3')}abc${last}`,
    '100 200 200.',
    ['POST /in "abc"', 'GET /last'],
  ],
  [
    'Expect: 100-continue in HTTP/1.0 is passed over',
    `POST /open/in HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc`,
    '200.',
    ['POST /in "abc"'],
  ],
  [
    'another expectation is passed over',
    `${head('POST', '/open/in', 'Expect: miracles', 'Content-Length: 3')}abc${last}`,
    '200 200.',
    ['POST /in "abc"', 'GET /last'],
  ],
  [
    'h2c is not taken up',
    head(
      'GET',
      '/open/a',
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA',
    ) + last,
    '200.',
    ['GET /a'],
  ],
  [
    'a WebSocket is refused by a service that has none, and nothing behind it is read',
    head(
      'GET',
      '/open/a',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ) + last,
    '403.',
    [],
  ],
  [
    'a WebSocket that Connection does not name is ignored by a service that has none',
    head('GET', '/open/a', 'Connection: keep-alive', 'Upgrade: websocket') + last,
    '200.',
    ['GET /a'],
  ],
  [
    'HTTP/1.0 has no WebSockets',
    'GET /open/a HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    '200.',
    ['GET /a'],
  ],
  [
    'Upgrade with content: the content stays content',
    `${head('POST', '/open/in', 'Connection: Upgrade', 'Upgrade: x', 'Content-Length: 3')}abc${last}`,
    '200.',
    ['POST /in "abc"'],
  ],
  [
    'a form on GET of a site',
    `${head('GET', site, 'Content-Type: application/x-www-form-urlencoded', 'Content-Length: 4')}id=6${last}`,
    '400 200.',
    ['GET /last'],
  ],
  [
    'content on DELETE goes on',
    `${head('DELETE', '/open/in', 'Content-Length: 3')}abc${last}`,
    '200 200.',
    ['DELETE /in "abc"', 'GET /last'],
  ],
  [
    'content on OPTIONS goes on',
    `${head('OPTIONS', '/open/in', 'Content-Length: 3')}abc${last}`,
    '200 200.',
    ['OPTIONS /in "abc"', 'GET /last'],
  ],
]
