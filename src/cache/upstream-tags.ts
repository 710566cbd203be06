import { type HeaderLines, hasHeader, headerValue, headerValues } from '../http/headers/header-lines.ts'
import { bareItem, readList } from '../http/headers/structured-fields.ts'
import { ownText } from '../http/retained.ts'
import { createTagNames, type TagNames } from './tag-names.ts'

/** Headers with tags of the upstream, and their separators. */
const tagHeaders: readonly { readonly name: string; readonly separator: RegExp }[] = [
  { name: 'surrogate-key', separator: /\s+/ },
  { name: 'cache-tag', separator: /[\s,]+/ },
  { name: 'xkey', separator: /[\s,]+/ },
]

/** An upstream may send thousands; each costs an index entry. */
const maxTags = 128
const longestTag = 128

const groupsIn = (headers: HeaderLines, name: string): readonly string[] => {
  const value = headerValue(headers, name)
  const members = value === undefined ? [] : (readList(value) ?? [])
  return members.map(bareItem).filter((item) => typeof item === 'string')
}

const taggingHeaders: ReadonlySet<string> = new Set([...tagHeaders.map(({ name }) => name), 'cache-groups'])

const none: readonly string[] = []

/**
 * Tags for those in the headers of a response, including Cache-Groups (RFC 9875). A response with more tags than the index takes, or
 * with a longer one, gets a tag that every invalidation by a tag of the upstream reaches.
 */
export const upstreamTags = (names: TagNames, headers: HeaderLines): readonly string[] => {
  // Most responses have none.
  if (!hasHeader(headers, taggingHeaders)) return none
  const allTags = new Set([
    ...tagHeaders.flatMap(({ name, separator }) =>
      headerValues(headers, name).flatMap((line) => line.split(separator)),
    ),
    ...groupsIn(headers, 'cache-groups'),
  ])
  allTags.delete('')
  const fittingTags = [...allTags].filter((tag) => tag.length <= longestTag).slice(0, maxTags)
  const tags = fittingTags.map((tag) => names.upstream(ownText(tag)))
  return fittingTags.length < allTags.size ? [...tags, names.moreUpstream] : tags
}

/** Tags for groups that the response to a write invalidates (RFC 9875 §3); the size of its head bounds them. */
export const invalidatedGroups = (names: TagNames, headers: HeaderLines): readonly string[] => {
  const groups = new Set(groupsIn(headers, 'cache-group-invalidation'))
  groups.delete('')
  return groups.size === 0 ? none : [...[...groups].map(names.upstream), names.moreUpstream]
}

/** The tag of stored responses that the upstream of the service has given its own name. */
export const upstreamTagName = (service: string, name: string): string =>
  createTagNames(service).upstream(name)

/** The tags that a purge by one reaches: one of the upstream also reaches responses with more tags than are stored. */
export const tagsReachedBy = (tag: string): readonly string[] => {
  const [, service] = /^([^/]+)\/upstream\//.exec(tag) ?? []
  return service === undefined ? [tag] : [tag, createTagNames(service).moreUpstream]
}
