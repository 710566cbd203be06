import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { withoutFields } from '../http/fields.ts'
import type { GatewayResponse } from '../http/message.ts'
import type { SentTexts } from './sent-texts.ts'

/** What the edge wants to know of an answer on its way out. */
export type SendOptions = {
  /** The gateway is going away: clients are told to connect elsewhere (RFC 9112 §9.6). */
  readonly isDraining: () => boolean
  readonly texts: SentTexts
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
 * Held back and let go, head and text leave in one write; end(text) alone would add an empty piece to them and need
 * writev, a fifth of what a hit costs.
 */
const sendText = (raw: ServerResponse, text: string): void => {
  const { socket } = raw
  // Queued behind another answer on its connection.
  if (socket === null) {
    raw.end(text, 'latin1')
    return
  }
  socket.cork()
  raw.write(text, 'latin1')
  socket.uncork()
  raw.end()
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
    const text = options.texts.textOf(content)
    if (text === undefined) raw.end(content)
    else sendText(raw, text)
    return
  }
  // pipeline() watches `close` several times over, beside Fastify and the signal of the request: no leak, they go with the response.
  raw.setMaxListeners(32)
  pipeline(content, raw, (error) => {
    if (error) options.broken(error)
  })
}
