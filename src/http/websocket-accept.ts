import { createHash } from 'node:crypto'

/** Sec-WebSocket-Accept for a key (RFC 6455 §1.3): proves that a 101 is for this handshake, and not a response that only has that status. */
export const acceptOf = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
