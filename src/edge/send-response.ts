import type { ServerResponse } from 'node:http'
import { withoutFields } from '../http/fields.ts'
import { type ContentText, type GatewayResponse, longestText } from '../http/message.ts'
import { pump } from './pump.ts'

/** What the edge wants to know of an answer on its way out. */
export type SendOptions = {
  /** The gateway is going away: clients are told to connect elsewhere (RFC 9112 §9.6). */
  readonly isDraining: () => boolean
  /** The content broke off: the client has got a short answer and sees it, since the connection is closed. */
  readonly broken: (error: Error) => void
}

const connectionField: ReadonlySet<string> = new Set(['connection'])

const closing = (fields: readonly string[]): string[] => [
  ...withoutFields(fields, connectionField),
  'Connection',
  'close',
]

/**
 * Held back and let go, a head and a text leave in one write. With a Buffer there are two pieces, and end(content) would
 * add an empty third: writev instead of write, a fifth of what a small hit costs. Latin-1 gives the octets one to one.
 */
const sendSmall = (raw: ServerResponse, content: Buffer, text: ContentText | undefined): void => {
  const { socket } = raw
  // Queued behind another answer on its connection; or of more pieces than head and text.
  if (socket === null || raw.chunkedEncoding) {
    raw.end(content)
    return
  }
  socket.cork()
  raw.write(text?.of === content ? text.latin1 : content.toString('latin1'), 'latin1')
  socket.uncork()
  raw.end()
}

/** TLS encrypts all that it is given at once, and keeps what the client does not take; it is given so much at a time. */
const sliceBytes = 64 * 1024

const isEncrypted = ({ req }: ServerResponse): boolean => 'encrypted' in req.socket

/** Writes the next slice when the one before has been taken, so that only the stored content waits for a slow reader. */
const sendInSlices = (raw: ServerResponse, content: Buffer): void => {
  let at = 0
  const proceed = (): void => {
    let hasRoom = true
    while (hasRoom && at < content.length) {
      hasRoom = raw.write(content.subarray(at, at + sliceBytes))
      at += sliceBytes
    }
    if (at < content.length) return
    raw.off('drain', proceed)
    raw.end()
  }
  raw.on('drain', proceed)
  proceed()
}

/** Writes head and content. A content that breaks off destroys the connection: a short answer must not look whole. */
export const sendResponse = (raw: ServerResponse, response: GatewayResponse, options: SendOptions): void => {
  const { status, fields, content } = response
  raw.writeHead(status, options.isDraining() ? closing(fields) : (fields as string[]))
  if (content === undefined) {
    raw.end()
    return
  }
  if (Buffer.isBuffer(content)) {
    if (content.length <= longestText) sendSmall(raw, content, response.text)
    else if (content.length > sliceBytes && isEncrypted(raw)) sendInSlices(raw, content)
    else raw.end(content)
    return
  }
  pump(content, raw, options.broken)
}
