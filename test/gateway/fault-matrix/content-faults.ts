import { pause } from '../../support/origin.ts'
import { badGateway, type Fault, headOf, passes, type Seen, scripted } from './fault.ts'
import { goodResponse } from './good-response.ts'

const json = 'Content-Type: application/json'
const fixed = (length: number | string) => headOf(`${json}\r\nContent-Length: ${length}`)
const chunked = headOf(`${json}\r\nTransfer-Encoding: chunked`)
const piece = `10000\r\n${'a'.repeat(0x10000)}\r\n`

/** Short responses are held back until they are complete; what streams has begun, and ends with its connection. */
const brokenOff: Seen = ['502', '502', '502', '200 cut', '200 cut']
/** The head of a response passes 100 ms after it came, stored or not. */
const brokenOffLater: Seen = ['200 cut', '502', '502', '200 cut', '200 cut']
const stalled: Seen = ['200 cut', '504', '504', '200 cut', '200 cut']

/** The content breaks off before the head of the streamed response was sent: the connection ends without one. */
const noHead: Seen = ['502', '502', '502', 'cut', 'cut']

/** After it the head is out: what streams has begun. */
const headOutMs = 150

/** Nothing but its silence ends what an upstream sends, so these end by themselves. */
const endlessMs = 3_000

/** Faults in framing and content, after a good head. */
export const contentFaults: readonly Fault[] = [
  scripted(
    'resets the connection in the middle of the content',
    async (_, wire) => {
      wire.write(`${fixed(10)}{"a":`)
      await pause(headOutMs)
      wire.reset()
    },
    brokenOffLater,
  ),
  scripted(
    'sends less than its Content-Length and closes',
    (_, wire) => {
      wire.write(`${fixed(10)}{"a":`)
      wire.end()
    },
    brokenOff,
  ),
  scripted('stops in the middle of the content', (_, wire) => wire.write(`${fixed(10)}{"a":`), stalled),
  scripted(
    'sends more than its Content-Length',
    (_, wire) => wire.write(`${fixed(goodResponse.length)}${goodResponse}{"evil":1}`),
    passes(200),
  ),
  scripted(
    'sends a second answer behind the first',
    (_, wire) => wire.write(`${fixed(goodResponse.length)}${goodResponse}${fixed(10)}{"evil":1}`),
    passes(200),
  ),
  scripted(
    'sends its content a byte at a time, and breaks off',
    async (_, wire) => {
      wire.write(fixed(100_000))
      for (
        const endsAt = performance.now() + endlessMs;
        performance.now() < endsAt && !wire.socket.destroyed;
      ) {
        wire.write('x')
        await pause(50)
      }
      wire.reset()
    },
    brokenOffLater,
  ),
  scripted(
    'sends content without measure, and breaks off',
    async (_, wire) => {
      wire.write(chunked)
      for (
        const endsAt = performance.now() + endlessMs;
        performance.now() < endsAt && !wire.socket.destroyed;
      ) {
        wire.write(piece)
        await pause(5)
      }
      wire.reset()
    },
    ['200 cut', '200 cut', '502', '200 cut', '200 cut'],
    'what is longer than `cache.maxEntryBytes` streams',
  ),
  scripted(
    'sends an invalid chunk size',
    (_, wire) => wire.write(`${chunked}0x5\r\n12345\r\n0\r\n\r\n`),
    noHead,
  ),
  scripted(
    'sends a chunk size beyond all numbers',
    (_, wire) => wire.write(`${chunked}fffffffffffffffff\r\n12345\r\n0\r\n\r\n`),
    noHead,
  ),
  scripted(
    'sends a chunk longer than its size',
    (_, wire) => wire.write(`${chunked}2\r\n12345\r\n0\r\n\r\n`),
    brokenOff,
  ),
  scripted(
    'sends a chunk extension of 64 KiB',
    (_, wire) =>
      wire.write(
        `${chunked}${goodResponse.length.toString(16)};${'x'.repeat(65_536)}\r\n${goodResponse}\r\n0\r\n\r\n`,
      ),
    passes(200),
  ),
  scripted(
    'leaves out the last chunk and closes',
    (_, wire) => {
      wire.write(`${chunked}2\r\n{}\r\n`)
      wire.end()
    },
    brokenOff,
  ),
  scripted(
    'resets the connection between two chunks',
    async (_, wire) => {
      wire.write(`${chunked}5\r\n{"a":\r\n`)
      await pause(headOutMs)
      wire.reset()
    },
    brokenOffLater,
  ),
  scripted(
    'adds trailers that would change the head',
    (_, wire) =>
      wire.write(
        `${headOf(`${json}\r\nTransfer-Encoding: chunked\r\nTrailer: Set-Cookie`)}${goodResponse.length.toString(16)}\r\n${goodResponse}\r\n0\r\nSet-Cookie: a=1\r\nCache-Control: public\r\n\r\n`,
      ),
    passes(200),
    'trailers are dropped (RFC 9110 §6.5.1)',
  ),
  scripted(
    'resets the connection under content that ends with it',
    async (_, wire) => {
      wire.write(`${headOf(`${json}\r\nConnection: close`)}{"a":`)
      await pause(headOutMs)
      wire.reset()
    },
    brokenOffLater,
  ),
  scripted(
    'resets the connection together with content that ends with it',
    (_, wire) => {
      wire.write(`${headOf(`${json}\r\nConnection: close`)}{"a":`)
      wire.reset()
    },
    brokenOff,
    'Node shows such a reset as an end; whether the peer is still there distinguishes them',
  ),
  scripted(
    'sends two Content-Lengths',
    (_, wire) => wire.write(`${headOf(`${json}\r\nContent-Length: 2\r\nContent-Length: 3`)}{} `),
    badGateway,
  ),
  scripted(
    'sends a length and chunks',
    (_, wire) =>
      wire.write(
        `${headOf(`${json}\r\nContent-Length: 2\r\nTransfer-Encoding: chunked`)}2\r\n{}\r\n0\r\n\r\n`,
      ),
    badGateway,
  ),
  scripted('sends a negative Content-Length', (_, wire) => wire.write(`${fixed('-2')}{}`), badGateway),
  scripted(
    'sends a Content-Length that is no number',
    (_, wire) => wire.write(`${fixed('0x2')}{}`),
    badGateway,
  ),
  scripted(
    'sends a Content-Length beyond all numbers',
    (_, wire) => wire.write(`${fixed('99999999999999999999')}{}`),
    badGateway,
  ),
  scripted(
    'sends an unknown transfer coding',
    (_, wire) => {
      wire.write(`${headOf(`${json}\r\nTransfer-Encoding: rot13`)}{}`)
      wire.end()
    },
    badGateway,
  ),
  scripted(
    'says gzip and sends none',
    (_, wire) =>
      wire.respond({
        headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
        content: '{"a":1}',
      }),
    passes(200),
    'contents are not decoded: the client finds out',
  ),
  scripted(
    'sends a 204 with content',
    (_, wire) => wire.write(`${headOf('Content-Length: 2', 204)}{}`),
    passes(204),
  ),
]
