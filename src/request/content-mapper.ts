import { Transform } from 'node:stream'

/** Maps content chunk by chunk; what `push` and `end` return, joined, is the mapped content. */
export type ContentMapper = {
  push(chunk: Buffer): Buffer
  end(): Buffer
  /** A faster way for complete content; undefined when this content needs `push`. */
  whole?(content: Buffer): Buffer | undefined
}

/** Maps complete content. */
export const mapWhole = (mapper: ContentMapper, content: Buffer): Buffer => {
  const whole = mapper.whole?.(content)
  if (whole !== undefined) return whole
  const mapped = mapper.push(content)
  const rest = mapper.end()
  return rest.length === 0 ? mapped : Buffer.concat([mapped, rest])
}

/** Maps content as it streams. */
export const createContentTransform = (mapper: ContentMapper): Transform =>
  new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, mapper.push(chunk)),
    flush: (done) => done(null, mapper.end()),
  })
