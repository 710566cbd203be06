import type { Readable } from 'node:stream'

/** Releases a content that nobody will read, and with it the connection it comes from. */
export const discard = (content: Buffer | Readable | undefined): void => {
  if (content !== undefined && !Buffer.isBuffer(content)) content.on('error', () => undefined).destroy()
}
