import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { withoutFields } from '../http/fields.ts'
import type { GatewayResponse } from '../http/message.ts'

/** What the edge wants to know of an answer on its way out. */
export type SendOptions = {
  /** The gateway is going away: tell the client to connect elsewhere (RFC 9112 §9.6). */
  readonly closing: boolean
  /** The content broke off: the client has got a short answer and sees it, since the connection is closed. */
  readonly broken: (error: Error) => void
}

const connectionField: ReadonlySet<string> = new Set(['connection'])

/** Writes head and content. A content that breaks off destroys the connection: a short answer must not look whole. */
export const sendResponse = (raw: ServerResponse, response: GatewayResponse, options: SendOptions): void => {
  const fields = options.closing
    ? [...withoutFields(response.fields, connectionField), 'Connection', 'close']
    : (response.fields as string[])
  raw.writeHead(response.status, fields)
  const { content } = response
  if (content === undefined || Buffer.isBuffer(content)) {
    raw.end(content)
    return
  }
  // pipeline() watches `close` several times over, beside Fastify and the signal of the request: no leak, they go with the response.
  raw.setMaxListeners(32)
  pipeline(content, raw, (error) => {
    if (error) options.broken(error)
  })
}
