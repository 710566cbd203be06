import { formatHttpDate } from '../../http/conditional/dates.ts'
import { contentEntityTag } from '../../http/conditional/entity-tags.ts'
import { type FieldLines, fieldValue, fieldValues, withoutFields } from '../../http/fields.ts'
import { endToEndFields } from '../../http/forwardable-fields.ts'
import type { ResponseHead } from '../../http/message.ts'
import { type ResponseControl, responseControl } from './response-control.ts'

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

const alwaysRemoved: ReadonlySet<string> = new Set(['age', 'content-length'])

const removedBy = ({ unkept }: ResponseControl): ReadonlySet<string> =>
  unkept.length === 0 ? alwaysRemoved : new Set([...alwaysRemoved, ...unkept])

/** What of the fields may be kept: nothing of the connection (RFC 9111 §3.1), nothing that no-cache or private names, no Age and no length. */
export const storableFields = (fields: FieldLines, control: ResponseControl): string[] =>
  withoutFields(endToEndFields(fields), removedBy(control))

/** Fields as kept: those that may be, the length of the content, and a date and a validator of our own where they lack. */
export const keptFields = (
  head: ResponseHead,
  content: Buffer,
  control: ResponseControl,
  receivedAt: number,
): string[] => {
  const fields = storableFields(head.fields, control)
  if (fieldValue(fields, 'date') === undefined) fields.push('Date', formatHttpDate(receivedAt))
  if (head.status === 200 && fieldValue(fields, 'etag') === undefined)
    fields.push('ETag', contentEntityTag(content))
  // RFC 9110 §8.6: no Content-Length with 204.
  if (head.status !== 204) fields.push('Content-Length', String(content.length))
  return fields
}
