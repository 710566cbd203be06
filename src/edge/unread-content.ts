import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { fieldValues, withoutFields } from '../http/fields.ts'
import type { GatewayResponse } from '../http/message.ts'

const connectionField: ReadonlySet<string> = new Set(['connection'])

/** Nothing that comes on this connection is taken for a request any more; see guard.ts. */
export const distrust = (distrusted: Set<Socket>, socket: Socket): void => {
  distrusted.add(socket)
  socket.once('close', () => distrusted.delete(socket))
}

/**
 * An answer to content that is still coming ends its connection, and nothing behind that content is a request any more (RFC 9112 §9.6:
 * after `close` no further request is processed). Where the content has all come, what follows it begins where everybody
 * says that it does: it may have been taken already, so it is answered, and the connection goes on.
 */
export const withUnreadContent = (
  raw: ServerResponse,
  response: GatewayResponse,
  distrusted: Set<Socket>,
): GatewayResponse => {
  // The only answers that are given for what the rest of the content may be.
  if (response.status !== 413 && response.status !== 408) return response
  const { req } = raw
  if (req.httpVersionMajor !== 1 || !fieldValues(response.fields, 'connection').includes('close'))
    return response
  if (req.complete) return { ...response, fields: withoutFields(response.fields, connectionField) }
  // The request may have lost its socket when its reader gave it up; the response has one from its turn on.
  const socket = raw.socket ?? (req.socket as Socket | null)
  if (socket !== null) distrust(distrusted, socket)
  return response
}
