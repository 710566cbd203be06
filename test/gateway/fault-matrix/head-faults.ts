import { pause } from '../../support/origin.ts'
import { badGateway, type Fault, gatewayTimeout, headOf, passes, scripted } from './fault.ts'
import { good, goodResponse } from './good-response.ts'

const json = 'Content-Type: application/json'
const fine = `${json}\r\nContent-Length: ${goodResponse.length}`

/** Faults before the head of the response is complete, and heads that are not HTTP. */
export const headFaults: readonly Fault[] = [
  scripted('resets the connection before the head', (_, wire) => wire.reset(), badGateway),
  scripted('closes the connection before the head', (_, wire) => wire.end(), badGateway),
  scripted(
    'resets the connection in the middle of the head',
    async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Le')
      await pause(10)
      wire.reset()
    },
    badGateway,
  ),
  scripted(
    'closes the connection in the middle of the head',
    (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Le')
      wire.end()
    },
    badGateway,
  ),
  scripted('reads the request and says nothing', () => {}, gatewayTimeout),
  scripted(
    'answers later than `timeouts.headers`',
    async (request, wire) => {
      await pause(1_200)
      good(request, wire, 0)
    },
    gatewayTimeout,
  ),
  scripted(
    'sends its head a byte at a time',
    async (_, wire) => {
      for (const byte of headOf(`X-Slow: ${'y'.repeat(200)}`)) {
        if (wire.socket.destroyed) return
        wire.write(byte)
        await pause(20)
      }
    },
    gatewayTimeout,
  ),
  scripted(
    'sends fields without end',
    async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\n')
      for (let i = 0; !wire.socket.destroyed; i += 1) {
        wire.write(`X-${i}: ${'y'.repeat(12_000)}\r\n`)
        await pause(1)
      }
    },
    badGateway,
    'cut at `upstream.limits.headerBytes`, 64 KiB',
  ),
  scripted(
    'sends a field of 64 KiB',
    (_, wire) => wire.write(headOf(`X-A: ${'a'.repeat(65_536)}\r\n${fine}`)),
    badGateway,
  ),
  scripted(
    'sends 1000 fields',
    (_, wire) =>
      wire.write(
        `${headOf(`${Array.from({ length: 1000 }, (__, i) => `X-${i}: ${'y'.repeat(20)}`).join('\r\n')}\r\n${fine}`)}${goodResponse}`,
      ),
    passes(200),
  ),
  scripted('speaks another protocol', (_, wire) => wire.write('SSH-2.0-OpenSSH_9.2\r\n'), badGateway),
  scripted('answers in HTTP/0.9', (_, wire) => void wire.socket.end('<html>hello</html>\r\n'), badGateway),
  scripted(
    'answers as HTTP/2.0',
    (_, wire) => wire.write(`HTTP/2.0 200 OK\r\n${fine}\r\n\r\n${goodResponse}`),
    passes(200),
    'what follows is HTTP/1.1, and is read as such',
  ),
  scripted(
    'sends a status of two digits',
    (_, wire) => wire.write(`HTTP/1.1 20 OK\r\n${fine}\r\n\r\n${goodResponse}`),
    badGateway,
  ),
  scripted(
    'sends the status 000',
    (_, wire) => wire.write(`HTTP/1.1 000 OK\r\n${fine}\r\n\r\n${goodResponse}`),
    badGateway,
  ),
  scripted(
    'ends its lines with LF alone',
    (_, wire) =>
      wire.write(`HTTP/1.1 200 OK\n${json}\nContent-Length: ${goodResponse.length}\n\n${goodResponse}`),
    badGateway,
  ),
  scripted(
    'sends a CR within a value',
    (_, wire) => wire.write(`${headOf(`X-A: a\rSet-Cookie: b=1\r\n${fine}`)}${goodResponse}`),
    badGateway,
  ),
  scripted(
    'sends a NUL within a value',
    (_, wire) => wire.write(`${headOf(`X-A: a\0b\r\n${fine}`)}${goodResponse}`),
    badGateway,
  ),
  scripted(
    'folds a field over two lines',
    (_, wire) => wire.write(`${headOf(`X-A: a\r\n b\r\n${fine}`)}${goodResponse}`),
    badGateway,
  ),
  scripted(
    'sends a space before a colon',
    (_, wire) => wire.write(`${headOf(`X-A : a\r\n${fine}`)}${goodResponse}`),
    passes(200),
    'the space is removed (RFC 9112 §5.1)',
  ),
  scripted(
    'sends a field without a name',
    (_, wire) => wire.write(`${headOf(`: a\r\n${fine}`)}${goodResponse}`),
    badGateway,
  ),
  scripted(
    'sends octets that are no UTF-8 in a field',
    (_, wire) => wire.write(`${headOf(`X-A: \xff\xfe\r\n${fine}`)}${goodResponse}`),
    passes(200),
    'field values are octets (RFC 9110 §5.5) and pass one to one',
  ),
  scripted(
    'sends interim responses without end',
    async (_, wire) => {
      while (!wire.socket.destroyed) {
        wire.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
        await pause(5)
      }
    },
    gatewayTimeout,
  ),
  scripted(
    'sends fifty interim responses, then its answer',
    (request, wire) => {
      for (let i = 0; i < 50; i += 1) wire.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
      good(request, wire, 0)
    },
    passes(200),
  ),
  scripted(
    'sends an unrequested 100, then its answer',
    (request, wire) => {
      wire.write('HTTP/1.1 100 Continue\r\n\r\n')
      good(request, wire, 0)
    },
    passes(200),
  ),
  scripted(
    'sends a 100 and no answer',
    (_, wire) => wire.write('HTTP/1.1 100 Continue\r\n\r\n'),
    gatewayTimeout,
  ),
  scripted(
    'switches protocols unasked',
    (_, wire) => wire.write(headOf('Connection: upgrade\r\nUpgrade: x', 101)),
    badGateway,
  ),
]
