import type { Socket } from 'node:net'
import { type ErrorCode, GatewayError } from '../../errors.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { ProtocolFault } from '../events.ts'
import { underWay } from './connections.ts'

type ParserError = Error & { readonly code?: string; readonly rawPacket?: Buffer }

const codes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'fields_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'content_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** What is wrong with bytes that node:http could not take for a request. */
const parserErrorCode = (error: ParserError): ErrorCode => codes[error.code ?? ''] ?? 'malformed_request'

const faults: Readonly<Record<string, ProtocolFault>> = {
  HPE_INVALID_METHOD: 'start-line',
  HPE_INVALID_URL: 'start-line',
  HPE_INVALID_VERSION: 'start-line',
  HPE_INVALID_CONSTANT: 'start-line',
  HPE_PAUSED_H2_UPGRADE: 'start-line',
  HPE_INVALID_HEADER_TOKEN: 'field',
  HPE_CR_EXPECTED: 'field',
  HPE_LF_EXPECTED: 'field',
  HPE_INVALID_CONTENT_LENGTH: 'framing',
  HPE_UNEXPECTED_CONTENT_LENGTH: 'framing',
  HPE_INVALID_TRANSFER_ENCODING: 'framing',
  HPE_INVALID_CHUNK_SIZE: 'chunking',
  HPE_STRICT: 'chunking',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'chunking',
  HPE_HEADER_OVERFLOW: 'too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'timeout',
  HPE_INVALID_EOF_STATE: 'cut-off',
}

/** What was wrong with the bytes, in words of a closed list. */
export const protocolFault = (error: ParserError): ProtocolFault => faults[error.code ?? ''] ?? 'other'

/** Path of the request line, as far as the bytes that could not be parsed show one; bounded, and used to pick the error's shape only. */
export const pathOfPacket = (packet: unknown): string => {
  const line = Buffer.isBuffer(packet) ? packet.subarray(0, 2048).toString('latin1') : ''
  return /^[A-Z-]{1,20} (\/[^\s?#]*)/.exec(line)?.[1] ?? '/'
}

const reasonPhrases: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  413: 'Content Too Large',
  431: 'Request Header Fields Too Large',
}

const textOf = ({ status, fields, content }: GatewayResponse): Buffer => {
  const lines = [`HTTP/1.1 ${status} ${reasonPhrases[status] ?? 'Error'}`]
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]?.toLowerCase() !== 'connection') lines.push(`${fields[i]}: ${fields[i + 1]}`)
  }
  lines.push('Connection: close', '', '')
  const head = Buffer.from(lines.join('\r\n'), 'latin1')
  return Buffer.isBuffer(content) ? Buffer.concat([head, content]) : head
}

const answerInTurn = (socket: Socket, response: GatewayResponse): void => {
  const before = underWay(socket)
  if (!socket.writable || before?.headersSent === true) socket.destroy()
  else socket.end(textOf(response))
}

const whenItsTurnComes = (socket: Socket, answer: () => void): void => {
  const before = underWay(socket)
  // An incomplete request is the very one whose content cannot be read.
  if (before?.req.complete === true) before.once('close', () => whenItsTurnComes(socket, answer))
  else answer()
}

const answered = new WeakSet<Socket>()

/** Each piece that comes behind an error raises it again. */
export const isAnswered = (socket: Socket): boolean => answered.has(socket)

/**
 * Is it about what came over the connection? node:http also tells of clients that have gone, and of connections that the
 * gateway has destroyed itself, because the upstream broke off.
 */
export const isRefusable = ({ code = '' }: ParserError): boolean =>
  code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT'

/**
 * Answers on a bare socket and closes it: after bytes that are no request nothing on this connection can be trusted. What was
 * asked before them is answered before them (RFC 9112 §9.3.2): the client would take the error for the answer to that.
 */
export const answerSocket = (socket: Socket, response: GatewayResponse): void => {
  answered.add(socket)
  whenItsTurnComes(socket, () => answerInTurn(socket, response))
}

/** The error as ours, for the shape of the service that the path belongs to. */
export const asRawError = (error: Error): GatewayError =>
  new GatewayError(parserErrorCode(error), { cause: error })
