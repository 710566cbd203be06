import { createHash } from 'node:crypto'

/** Most keys and tags are shorter, and are kept as they are: to make a digest takes longer than all else that is done with one. */
const longestKept = 128

/** Begins every digest; no key or tag that is kept as it is begins with it. */
const mark = '#'

/**
 * The text, or SHA-256 of one that is long: a client that sends 14 KB in a header that a response varies by must not decide how much
 * memory a key takes. Different texts stay different.
 */
export const shortText = (text: string): string =>
  text.length <= longestKept && !text.startsWith(mark)
    ? text
    : mark + createHash('sha256').update(text).digest('base64url')

/** V8 keeps all of a text for the sake of a part that was cut out of it, and all pieces of one that was put together and never compared. */
export const ownText = (text: string): string => Buffer.from(text).toString()

/** Bytes beside the content in its buffer, up to this and up to a quarter of the content, cost less than a copy. */
const maxBesides = 1024

/**
 * A content in its own buffer. Small buffers are often slices of a pool, which they would keep alive; a content that came in one
 * read of a socket has only its own head beside it.
 */
export const ownBytes = (content: Buffer): Buffer => {
  const besides = content.buffer.byteLength - content.length
  if (besides <= maxBesides && besides * 4 <= content.length) return content
  const copy = Buffer.allocUnsafeSlow(content.length)
  content.copy(copy)
  return copy
}
