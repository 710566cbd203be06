import { Transform } from 'node:stream'

/** Maps content piece by piece; what `push` and `end` gave, joined, is the mapped content. */
export type ContentMapper = {
  push(chunk: Buffer): Buffer
  end(): Buffer
  /** The same for content that is there as a whole, where there is a shorter way; undefined where there is none. */
  whole?(content: Buffer): Buffer | undefined
}

/** Content that is there as a whole. */
export const mapWhole = (mapper: ContentMapper, content: Buffer): Buffer => {
  const whole = mapper.whole?.(content)
  if (whole !== undefined) return whole
  const mapped = mapper.push(content)
  const rest = mapper.end()
  return rest.length === 0 ? mapped : Buffer.concat([mapped, rest])
}

/** Content that streams through. */
export const createContentTransform = (mapper: ContentMapper): Transform =>
  new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, mapper.push(chunk)),
    flush: (done) => done(null, mapper.end()),
  })
