import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'

/** HTTP/1.0 knows no chunks: there the end of the connection may be the end of the content (RFC 9112 §6.3), a reset is not. */
const cut = (raw: ServerResponse): void => {
  if (raw.req.httpVersion === '1.0') raw.socket?.resetAndDestroy()
  raw.destroy()
}

/**
 * Carries a content to the client, no faster than the client reads. Ended early on either side, both end: a short answer must
 * not look whole, and an upstream whose reader has gone is left alone. stream.pipeline() does the same, and makes an
 * AbortController and a DOMException for each answer: as much as all else that passing on a small one costs.
 */
export const pump = (content: Readable, raw: ServerResponse, broken: (error: Error) => void): void => {
  content.on('data', (chunk: Buffer) => {
    if (!raw.write(chunk)) content.pause()
  })
  raw.on('drain', () => content.resume())
  raw.once('close', () => content.destroy())
  content.once('end', () => raw.end())
  // Stays for as long as the content does: it may fail while it is being destroyed.
  content.on('error', broken)
  content.once('close', () => {
    if (!content.readableEnded) cut(raw)
  })
  // It broke off before anybody listened.
  if (content.closed && !content.readableEnded) cut(raw)
}
