import { collecting } from '../cache/collecting.ts'
import type { WrittenAnswer } from '../cache/written-answer.ts'
import { fieldValue } from '../http/fields.ts'
import type { ShapedHead } from '../http/message.ts'

/** The head of an answer to POST, with what keeps its content for later reads on the way to the client. */
export const keepingContent = (written: WrittenAnswer, shaped: ShapedHead): ShapedHead => {
  const keep = written.begin(shaped)
  const declared = fieldValue(shaped.fields, 'content-length')
  const bytes = declared === undefined ? undefined : Number(declared)
  return { ...shaped, through: collecting(written.maxBytes, bytes, written.room, keep) }
}
