import { Transform } from 'node:stream'

/** Passes content on and gives it away in one piece at the end; not when it is too long or contradicts its length. */
export const collecting = (
  maxBytes: number,
  declared: number | undefined,
  done: (content: Buffer) => void,
): Transform => {
  let chunks: Buffer[] = []
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, next) {
      bytes += chunk.length
      if (bytes <= maxBytes) chunks.push(chunk)
      else chunks = []
      next(null, chunk)
    },
    flush(next) {
      if ((declared === undefined || declared === bytes) && bytes <= maxBytes) done(Buffer.concat(chunks))
      next()
    },
  })
}
