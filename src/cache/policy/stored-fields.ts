import { formatHttpDate } from '../../http/conditional/dates.ts'
import { contentEntityTag } from '../../http/conditional/entity-tags.ts'
import { type FieldLines, fieldValue, fieldValues, withoutFields } from '../../http/fields.ts'
import { endToEndFields } from '../../http/forwardable-fields.ts'
import type { ResponseHead } from '../../http/message.ts'
import { type ResponseControl, responseControl } from './response-control.ts'

const none: FieldLines = []

/**
 * Fields that are not stored but sent to the client that fetched the response: the upstream's Age, and fields that no-cache or
 * private name.
 */
export const fieldsNotStored = (response: ResponseHead): FieldLines => {
  const { notStored } = responseControl(response.fields)
  if (notStored.length === 0 && fieldValue(response.fields, 'age') === undefined) return none
  const lines: string[] = []
  for (const name of new Set(['age', ...notStored])) {
    for (const value of fieldValues(response.fields, name)) lines.push(name, value)
  }
  return lines
}

const alwaysRemoved: ReadonlySet<string> = new Set(['age', 'content-length'])

const removedBy = ({ notStored }: ResponseControl): ReadonlySet<string> =>
  notStored.length === 0 ? alwaysRemoved : new Set([...alwaysRemoved, ...notStored])

/** Fields that may be stored: none of the connection (RFC 9111 §3.1), none that no-cache or private name, no Age and no length. */
export const storableFields = (fields: FieldLines, control: ResponseControl): string[] =>
  withoutFields(endToEndFields(fields), removedBy(control))

/** Fields as stored: those that may be, the length of the content, and Date and ETag where the upstream sent none. */
export const storedFields = (
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
