import { Transform } from 'node:stream'
import type { WrittenAnswer } from '../cache/written-answer.ts'
import { fieldValue } from '../http/fields.ts'
import type { ShapedHead } from '../http/message.ts'

/** Passes content on and gives it away in one piece at the end; not when it is too long or contradicts its length. */
const collecting = (
  maxBytes: number,
  declared: string | undefined,
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
      const whole = declared === undefined || Number(declared) === bytes
      if (whole && bytes <= maxBytes) done(Buffer.concat(chunks))
      next()
    },
  })
}

/** The head of an answer to POST, with what keeps its content for later reads on the way to the client. */
export const keepingContent = (written: WrittenAnswer, shaped: ShapedHead): ShapedHead => {
  const keep = written.begin(shaped)
  const declared = fieldValue(shaped.fields, 'content-length')
  return { ...shaped, through: collecting(written.maxBytes, declared, keep) }
}
