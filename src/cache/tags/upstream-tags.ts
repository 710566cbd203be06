import { type FieldLines, fieldValue, fieldValues, hasField, ownText } from '../../http/fields.ts'
import { parseList } from '../../http/structured-fields.ts'

/** Fields with tags of the upstream, and their separators. */
const tagFields: readonly { readonly name: string; readonly separator: RegExp }[] = [
  { name: 'surrogate-key', separator: /\s+/ },
  { name: 'cache-tag', separator: /[\s,]+/ },
  { name: 'xkey', separator: /[\s,]+/ },
]

/** An upstream may send thousands; each costs an index entry. */
const mostTags = 128
const longestTag = 128

const groupsIn = (fields: FieldLines, name: string): readonly string[] => {
  const value = fieldValue(fields, name)
  const members = value === undefined ? [] : (parseList(value) ?? [])
  return members.flatMap((member) =>
    member.kind === 'item' && member.item.type === 'string' ? [member.item.value] : [],
  )
}

const bounded = (tags: readonly string[]): readonly string[] =>
  [...new Set(tags)]
    .filter((tag) => tag !== '' && tag.length <= longestTag)
    .slice(0, mostTags)
    .map(ownText)

const taggingFields: ReadonlySet<string> = new Set([...tagFields.map(({ name }) => name), 'cache-groups'])

const none: readonly string[] = []

/** Tags in the fields of a response, including Cache-Groups (RFC 9875). */
export const upstreamTags = (fields: FieldLines): readonly string[] => {
  // Most responses have none.
  if (!hasField(fields, taggingFields)) return none
  return bounded([
    ...tagFields.flatMap(({ name, separator }) =>
      fieldValues(fields, name).flatMap((line) => line.split(separator)),
    ),
    ...groupsIn(fields, 'cache-groups'),
  ])
}

/** Groups that the response to a write invalidates (RFC 9875 §3). */
export const invalidatedGroups = (fields: FieldLines): readonly string[] =>
  bounded(groupsIn(fields, 'cache-group-invalidation'))
