import { type FieldLines, fieldValue, fieldValues } from '../http/fields.ts'
import type { ResponseHead } from '../http/message.ts'
import { responseControl } from './response-control.ts'

const none: FieldLines = []

/** What is not kept and yet belongs to the reader who asked: Age as it came, and fields that no-cache or private name. */
export const fieldsNotKept = (response: ResponseHead): FieldLines => {
  const { unkept } = responseControl(response.fields)
  if (unkept.length === 0 && fieldValue(response.fields, 'age') === undefined) return none
  const lines: string[] = []
  for (const name of new Set(['age', ...unkept])) {
    for (const value of fieldValues(response.fields, name)) lines.push(name, value)
  }
  return lines
}
