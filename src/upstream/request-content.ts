import { Readable } from 'node:stream'
import { GatewayError } from '../errors.ts'

/** Can this content be sent (again)? A stream only as long as nobody has read from it. */
export const isReplayable = (content: unknown, sent: boolean): boolean => {
  if (content === undefined || content === null) return true
  if (typeof content === 'string' || content instanceof Uint8Array) return true
  return content instanceof Readable && !sent && !content.destroyed && !content.readableDidRead
}

/** A stream or a session of HTTP/2 that was ended: undici hands that to the content before it tells of it. */
const isOfStream = (error: Error): boolean =>
  'code' in error && typeof error.code === 'string' && error.code.startsWith('ERR_HTTP2_')

/**
 * Did the attempt fail because its content did, so that the client is at fault? When the connection breaks instead,
 * undici reports that before it destroys the content with the same error.
 */
export const failedByContent = (content: unknown, error: Error): boolean =>
  content instanceof Readable && content.errored === error && !isOfStream(error)

/** What that means: too much of it, or, if nobody here says otherwise, a client that went in the middle. */
export const contentFailure = (error: Error): GatewayError =>
  error instanceof GatewayError ? error : new GatewayError('client_gone', { cause: error })
