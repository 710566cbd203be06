import { type FieldLines, fieldValue, fieldValues, hasField, ownText } from '../../http/fields.ts'
import type { ResponseHead } from '../../http/message.ts'
import { parseList } from '../../http/structured-fields.ts'
import type { TagNames } from './tag-names.ts'

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

const taggingFields: ReadonlySet<string> = new Set([...tagFields.map(({ name }) => name), 'cache-groups'])

const none: readonly string[] = []

/**
 * Tags for those in the fields of a response, including Cache-Groups (RFC 9875). A response with more tags than the index takes, or
 * with a longer one, gets a tag that every invalidation by a tag of the upstream reaches.
 */
export const upstreamTags = (names: TagNames, fields: FieldLines): readonly string[] => {
  // Most responses have none.
  if (!hasField(fields, taggingFields)) return none
  const all = new Set([
    ...tagFields.flatMap(({ name, separator }) =>
      fieldValues(fields, name).flatMap((line) => line.split(separator)),
    ),
    ...groupsIn(fields, 'cache-groups'),
  ])
  all.delete('')
  const kept = [...all].filter((tag) => tag.length <= longestTag).slice(0, mostTags)
  const tags = kept.map((tag) => names.upstream(ownText(tag)))
  return kept.length < all.size ? [...tags, names.moreUpstream] : tags
}

/** Tags for groups that the response to a write invalidates (RFC 9875 §3); the size of its head bounds them. */
export const invalidatedGroups = (names: TagNames, fields: FieldLines): readonly string[] => {
  const groups = new Set(groupsIn(fields, 'cache-group-invalidation'))
  groups.delete('')
  return groups.size === 0 ? none : [...[...groups].map(names.upstream), names.moreUpstream]
}

/** Kinds of ids and names in Trellis-Tags: posts, terms, users, comments, menus, listed types, options, tables. */
const taggedKinds: ReadonlySet<string> = new Set(['p', 't', 'u', 'c', 'm', 'list'])
const knownKinds: ReadonlySet<string> = new Set([...taggedKinds, 'o', 'x'])
const valuePattern = /^[A-Za-z0-9_.:-]{1,191}$/
/** The companion sends at most 4,000 octets. */
const longestList = 4_096

type Listed = { readonly kind: string; readonly values: readonly string[] }

const flags: ReadonlySet<string> = new Set(['complete', 'n', 'site'])

type Description = { readonly lists: readonly Listed[]; readonly isComplete: boolean }

/** The lists in the text; undefined when it is damaged. `n` counts the ids and names in all of them. */
const descriptionIn = (text: string): Description | undefined => {
  const [version, ...parts] = text.split(';')
  const members = new Map(parts.map((part) => part.split('=', 2) as [string, string | undefined]))
  if (text.length > longestList || version !== 'v1' || members.size < parts.length) return undefined
  const lists = [...members].flatMap(([kind, list]) =>
    flags.has(kind) ? [] : [{ kind, values: list === undefined || list === '' ? [] : list.split(',') }],
  )
  const values = lists.flatMap((list) => list.values)
  const isSound =
    lists.every(({ kind }) => knownKinds.has(kind)) &&
    values.every((value) => valuePattern.test(value)) &&
    members.get('n') === String(values.length)
  return isSound ? { lists, isComplete: members.has('complete') } : undefined
}

/**
 * Tags for what the companion says that a response was made of. Every change that others than editors see reaches a response that is
 * not described completely.
 */
export const companionTags = (names: TagNames, { hints }: Pick<ResponseHead, 'hints'>): readonly string[] => {
  if (hints?.tags === undefined) return none
  const described = descriptionIn(hints.tags)
  if (described === undefined) return [names.companionUnknown]
  const tags = described.lists
    .filter(({ kind }) => taggedKinds.has(kind))
    .flatMap(({ kind, values }) => values.map((value) => names.companion(kind, ownText(value))))
  return described.isComplete ? tags : [...tags, names.companionUnknown]
}
