import { last, post, type RawCase } from './raw-case.ts'

const chunked = (content: string): string => post(['Transfer-Encoding: chunked'], content)
const seen = ['POST /in "abc"', 'GET /last']

const fine = (what: string, content: string): RawCase => [what, chunked(content) + last, '200 200.', seen]
/** The upstream may have seen the beginning, and then the end of its connection; never a whole request. */
const broken = (what: string, content: string, status = 400): RawCase => [
  what,
  chunked(content) + last,
  `${status}.`,
  [],
]
const end = '0\r\n\r\n'

/** Chunks (RFC 9112 §7.1). */
export const chunks: readonly RawCase[] = [
  fine('leading zeros in a size', `0003\r\nabc\r\n${end}`),
  fine('two chunks', `1\r\na\r\n2\r\nbc\r\n${end}`),
  fine('sixteen leading zeros in a size', `00000000000000003\r\nabc\r\n${end}`),
  fine('an extension without a name', `3;=b\r\nabc\r\n${end}`),
  fine(
    'an extension on every chunk',
    `1;a=${'x'.repeat(9_000)}\r\na\r\n2;a=${'x'.repeat(9_000)}\r\nbc\r\n${end}`,
  ),
  fine('several zeros at the end', `3\r\nabc\r\n000\r\n\r\n`),
  fine('an extension', `3;a=b\r\nabc\r\n${end}`),
  fine('an extension without a value', `3;a\r\nabc\r\n${end}`),
  fine('a quoted extension', `3;a="b c"\r\nabc\r\n${end}`),
  fine('an extension on the last chunk', `3\r\nabc\r\n0;a=b\r\n\r\n`),
  fine('a trailer is dropped', `3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n`),
  fine('Authorization in the trailer is dropped', `3\r\nabc\r\n0\r\nAuthorization: Bearer x\r\n\r\n`),
  fine('Cache-Control in the trailer is dropped', `3\r\nabc\r\n0\r\nCache-Control: max-age=9\r\n\r\n`),
  fine('an override in the trailer is dropped', `3\r\nabc\r\n0\r\nX-HTTP-Method-Override: DELETE\r\n\r\n`),
  broken('a length in the trailer', `3\r\nabc\r\n0\r\nContent-Length: 5\r\n\r\n`),
  broken('a coding in the trailer', `3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n`),
  broken('a trailer that is no field', `3\r\nabc\r\n0\r\nnonsense\r\n\r\n`),
  broken('a trailer with a space in front of its colon', `3\r\nabc\r\n0\r\nX : 1\r\n\r\n`),
  broken('a trailer with a bare LF', `3\r\nabc\r\n0\r\nX: 1\n\r\n`),
  broken('a trailer with NUL', `3\r\nabc\r\n0\r\nX: \0\r\n\r\n`),
  broken('a trailer of 64 kB', `3\r\nabc\r\n0\r\nX: ${'x'.repeat(65536)}\r\n\r\n`, 431),
  broken('a size with 0x', `0x3\r\nabc\r\n${end}`),
  broken('a size with a plus', `+3\r\nabc\r\n${end}`),
  broken('a negative size', `-3\r\nabc\r\n${end}`),
  broken('a size with an underscore', `0_3\r\nabc\r\n${end}`),
  broken('an empty size', `\r\nabc\r\n${end}`),
  broken('a space in front of the size', ` 3\r\nabc\r\n${end}`),
  broken('a space behind the size', `3 \r\nabc\r\n${end}`),
  broken('a tab behind the size', `3\t\r\nabc\r\n${end}`),
  broken('a space in front of the extension', `3 ;a=b\r\nabc\r\n${end}`),
  broken('a size that is no number', `g\r\nabc\r\n${end}`),
  broken('a size with a point', `3.0\r\nabc\r\n${end}`),
  broken('a size of 2^64 + 3', `10000000000000003\r\nabc\r\n${end}`),
  broken('a size of 2^68', `fffffffffffffffff\r\nabc\r\n${end}`),
  broken('LF alone behind the size', `3\nabc\r\n${end}`),
  broken('CR alone behind the size', `3\rabc\r\n${end}`),
  broken('CR and a letter behind the size', `3\rX\nabc\r\n${end}`),
  broken('CR twice behind the size', `3\r\r\nabc\r\n${end}`),
  broken('NUL behind the size', `3\0\r\nabc\r\n${end}`),
  broken('a chunk that is longer than its size', `3\r\nabcd\r\n${end}`),
  broken('a chunk that is shorter than its size', `4\r\nabc\r\n${end}`),
  broken('LF alone behind a chunk', `3\r\nabc\n${end}`),
  broken('CR alone behind a chunk', `3\r\nabc\r${end}`),
  broken('nothing behind a chunk', `3\r\nabc${end}`),
  broken('an extension with a bare LF', `3;a\nb\r\nabc\r\n${end}`),
  broken('an extension with a bare CR', `3;a\rb\r\nabc\r\n${end}`),
  broken('an extension with NUL', `3;a=\0\r\nabc\r\n${end}`),
  broken('a line end in a quoted extension', `3;a="\r\n0\r\n\r\n"\r\nabc\r\n${end}`),
  broken('an extension of a megabyte', `3;a=${'x'.repeat(1 << 20)}\r\nabc\r\n${end}`, 413),
  broken('LF alone behind the last chunk', `3\r\nabc\r\n0\n\r\n`),
  broken('LF alone at the very end', `3\r\nabc\r\n0\r\n\n`),
  broken('CR and a letter at the very end', `3\r\nabc\r\n0\r\n\rX`),
  ['content without its last chunk is waited for', chunked('3\r\nabc\r\n'), '', []],
  ['content without its last line end is waited for', chunked('3\r\nabc\r\n0\r\n'), '', []],
]
