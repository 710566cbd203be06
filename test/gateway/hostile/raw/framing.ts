import { head, last, post, type RawCase, refused } from './raw-case.ts'

const seen = ['POST /in "abc"', 'GET /last']

const length = (value: string): string => post([`Content-Length:${value}`], 'abc')
const coded = (...lines: readonly string[]): string => post(lines, '3\r\nabc\r\n0\r\n\r\n')
const both = (...lines: readonly string[]): string =>
  post(['Content-Length: 13', ...lines], '3\r\nabc\r\n0\r\n\r\n')

// A tab beside a value is allowed (RFC 9110 §5.6.3). llhttp takes it around a length since 9.4, which Node 22 and later have.
const takesTabs = (process.versions['llhttp'] ?? '').localeCompare('9.4', 'en', { numeric: true }) >= 0

/** Content-Length and Transfer-Encoding, alone and together (RFC 9112 §6). */
export const framing: readonly RawCase[] = [
  ['a length', length(' 3') + last, '200 200.', seen],
  ['a length without a space', length('3') + last, '200 200.', seen],
  ['a length between spaces', length('   3  ') + last, '200 200.', seen],
  takesTabs
    ? ['a length between tabs', length('\t3\t') + last, '200 200.', seen]
    : refused('a length between tabs', length('\t3\t')),
  ['a length with a leading zero is decimal', length(' 03') + last, '200 200.', seen],
  ['a length of zero', post(['Content-Length: 0'], '') + last, '200 200.', ['POST /in', 'GET /last']],
  refused('a length with a plus', length(' +3')),
  refused('a negative length', length(' -3')),
  refused('a length of minus zero', length(' -0')),
  refused('a hexadecimal length', length(' 0x3')),
  refused('a length with an underscore', length(' 3_0')),
  refused('a length with a point', length(' 3.0')),
  refused('a length with an exponent', length(' 1e1')),
  refused('an empty length', length('')),
  refused('a length of spaces', length('   ')),
  refused('a length that is a list', length(' 3, 3')),
  refused('a length that begins with a comma', length(' ,3')),
  refused('a length that ends with a comma', length(' 3,')),
  refused('two numbers', length(' 3 3')),
  refused('a length with a parameter', length(' 3;a')),
  refused('a quoted length', length(' "3"')),
  refused('a length beyond 64 bits', length(' 99999999999999999999')),
  refused('a length of 2^64 + 3', length(' 18446744073709551619')),
  refused('a length with a vertical tab', length(' \x0b3')),
  refused('a length with a form feed', length(' 3\x0c')),
  refused('a length with NUL', length(' 3\0')),
  refused('a length in digits of another script', length(' \xd9\xa3')),
  refused('a folded length', length('\r\n 3')),
  refused('a length folded after a digit', length(' 3\r\n 0')),
  refused('a space in front of the colon of a length', post(['Content-Length : 3'], 'abc')),
  refused('a tab in front of the colon of a length', post(['Content-Length\t: 3'], 'abc')),
  refused('the same length twice', post(['Content-Length: 3', 'Content-Length: 3'], 'abc')),
  refused('two lengths, the first right', post(['Content-Length: 3', 'Content-Length: 30'], 'abc')),
  refused('two lengths, the second right', post(['Content-Length: 30', 'Content-Length: 3'], 'abc')),
  refused('two lengths, one in other letters', post(['content-length: 3', 'CONTENT-LENGTH: 0'], 'abc')),
  [
    'a length with an underscore in its name is no length, and is not sent on',
    post(['Content_Length: 3'], '') + last,
    '200 200.',
    ['POST /in', 'GET /last'],
  ],
  [
    'a length named by Connection stays',
    post(['Connection: Content-Length', 'Content-Length: 3'], 'abc') + last,
    '200 200.',
    seen,
  ],

  ['chunks', coded('Transfer-Encoding: chunked') + last, '200 200.', seen],
  ['chunks in other letters', coded('transfer-encoding: CHUNKED') + last, '200 200.', seen],
  ['chunks with spaces around', coded('Transfer-Encoding:  chunked  ') + last, '200 200.', seen],
  refused('chunks with a tab behind', coded('Transfer-Encoding: chunked\t')),
  [
    'chunks named by Connection stay',
    coded('Connection: Transfer-Encoding', 'Transfer-Encoding: chunked') + last,
    '200 200.',
    seen,
  ],
  refused('length and chunks', both('Transfer-Encoding: chunked')),
  refused(
    'chunks and length',
    post(['Transfer-Encoding: chunked', 'Content-Length: 13'], '3\r\nabc\r\n0\r\n\r\n'),
  ),
  refused(
    'a length of zero and chunks',
    post(['Content-Length: 0', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
  ),
  refused('length and a coding that is none', both('Transfer-Encoding: identity')),
  refused('length and a folded coding', both('Transfer-Encoding:\r\n chunked')),
  refused('length and a coding behind a bare LF', both('X: y\nTransfer-Encoding: chunked')),
  refused('length and a coding behind a bare CR', both('X: y\rTransfer-Encoding: chunked')),
  refused('length and a coding with a space in front of its colon', both('Transfer-Encoding : chunked')),
  refused(
    'length and a coding with a space in front of its name',
    both('X: y', ' Transfer-Encoding: chunked'),
  ),
  refused('length and a coding with NUL in its name', both('Transfer-Encoding\0: chunked')),
  [
    'length and a coding with an underscore in its name: the length holds, the other is not sent on',
    both('Transfer_Encoding: chunked') + last,
    '200 200.',
    ['POST /in "3\\r\\nabc\\r\\n0\\r\\n\\r\\n"', 'GET /last'],
  ],
  refused('chunked is not the last coding', coded('Transfer-Encoding: chunked, identity')),
  refused('a coding that begins like chunked', coded('Transfer-Encoding: chunkedx')),
  refused('a coding that ends like chunked', coded('Transfer-Encoding: xchunked')),
  refused('identity', coded('Transfer-Encoding: identity')),
  refused('an empty coding', coded('Transfer-Encoding:')),
  refused('a list with an empty member in front', coded('Transfer-Encoding: , chunked')),
  refused('a list with an empty member behind', coded('Transfer-Encoding: chunked,')),
  refused('chunked twice', coded('Transfer-Encoding: chunked, chunked')),
  refused('chunked in two lines', coded('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')),
  refused(
    'identity, then chunked in its own line',
    coded('Transfer-Encoding: identity', 'Transfer-Encoding: chunked'),
  ),
  refused(
    'chunked, then identity in its own line',
    coded('Transfer-Encoding: chunked', 'Transfer-Encoding: identity'),
  ),
  refused('a coding nobody here undoes', coded('Transfer-Encoding: gzip, chunked')),
  refused('a coding without chunks', post(['Transfer-Encoding: gzip'], 'abc')),
  refused('chunked in quotes', coded('Transfer-Encoding: "chunked"')),
  refused('chunked with a parameter', coded('Transfer-Encoding: chunked;q=1')),
  refused('chunked behind a vertical tab', coded('Transfer-Encoding: \x0bchunked')),
  refused('chunked in front of a form feed', coded('Transfer-Encoding: chunked\x0c')),
  refused('a folded coding', coded('Transfer-Encoding:\r\n chunked')),
  refused('a coding folded behind another', coded('Transfer-Encoding: x\r\n chunked')),
  refused(
    'chunks in HTTP/1.0',
    `POST /open/in HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
  ),
  refused(
    'chunks and length in HTTP/1.0',
    `POST /open/in HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc`,
  ),
  ['a content that is too short is waited for', post(['Content-Length: 4'], 'abc'), '', []],
  [
    'what is behind the length is the next request',
    post(['Content-Length: 3'], 'abc') + head('GET', '/open/b') + last,
    '200 200 200.',
    ['POST /in "abc"', 'GET /b', 'GET /last'],
  ],
  ['content without a length is no content', post([], 'abc'), '200 400.', ['POST /in']],
]
