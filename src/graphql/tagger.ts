import { createTagNames, type TagNames } from '../cache/tag-names.ts'
import { invalidatedGroups, upstreamTags } from '../cache/upstream-tags.ts'
import { parsedContent, type Readability } from '../http/bodies/json-readability.ts'
import { headerValue } from '../http/headers/header-lines.ts'
import { essence } from '../http/headers/media-type.ts'
import { isJsonObject, ownMember } from '../http/json-text.ts'
import type { ResponseHead } from '../http/message.ts'
import type { Change, TaggedResponse, Tagger, WriteResponse } from '../service/tagger.ts'

const mediaTypes: ReadonlySet<string> = new Set(['application/json', 'application/graphql-response+json'])

/** A whole result without errors (GraphQL §7.1). */
const isResult = (value: unknown): boolean =>
  isJsonObject(value) &&
  !Object.hasOwn(value, 'errors') &&
  isJsonObject(ownMember(value, 'data')) &&
  !Object.hasOwn(value, 'hasNext')

const readability = (
  { status, headers }: ResponseHead,
  content: Buffer | undefined,
  isFromOwnCache: Companion['isFromOwnCache'],
): Readability => {
  if (status !== 200 || !mediaTypes.has(essence(headerValue(headers, 'content-type')))) return 'unreadable'
  if (headerValue(headers, 'content-encoding') !== undefined) return 'unreadable'
  if (content === undefined) return 'unknown'
  const value = parsedContent(content)
  return isResult(value) && !isFromOwnCache(value) ? 'readable' : 'unreadable'
}

/** Nothing was executed: there is no `data`, not even null (GraphQL §7.1.2). */
const isRefusal = (value: unknown): boolean =>
  isJsonObject(value) && Array.isArray(value['errors']) && !Object.hasOwn(value, 'data')

/** A list is answered with a list. */
const changedNothing = (response: WriteResponse | undefined): boolean => {
  if (response?.content === undefined || response.status >= 500) return false
  const value = parsedContent(response.content)
  return Array.isArray(value) ? value.length > 0 && value.every(isRefusal) : isRefusal(value)
}

/** What the companion of the upstream says in responses and of changes. */
export type Companion = {
  describe(
    names: TagNames,
    response: TaggedResponse,
  ): { readonly tags: readonly string[]; readonly isComplete: boolean }
  /** The upstream took the response out of a cache of its own, so that it may be older than its data. */
  isFromOwnCache(response: unknown): boolean
  /** The tags of a change on responses that are described completely; undefined when it may reach all of them. */
  describedChange(names: TagNames, change: Change): readonly string[] | undefined
}

/** A change of which not everything is known is one of everything, like more tags than these. */
const maxTags = 5_000

/** The tags of changes: all responses that are not described completely, and what the companion says of the others. */
const changedTags = (
  { describedChange }: Companion,
  names: TagNames,
  changes: readonly Change[],
): readonly string[] | undefined => {
  if (changes.length === 0) return []
  const tags = new Set([names.undescribed])
  for (const change of changes) {
    const described = describedChange(names, change)
    if (described === undefined || tags.size > maxTags) return undefined
    for (const tag of described) tags.add(tag)
  }
  return [...tags]
}

/**
 * A mutation drops everything, unless the companion has reported what it wrote. `complete`: a mutation drops only the groups that its
 * response names (RFC 9875 §3), where it names some.
 */
export const createGraphqlTagger = (options: {
  readonly service: string
  readonly tags: 'partial' | 'complete'
  readonly companion: Companion
}): Tagger => {
  const { companion } = options
  const names = createTagNames(options.service)
  return {
    storedTags: (_found, _args, response) => {
      const described = companion.describe(names, response)
      return [
        names.all,
        ...(described.isComplete ? [] : [names.undescribed]),
        ...new Set(described.tags),
        ...upstreamTags(names, response.headers),
      ]
    },
    // A cart or a session that a write changes without a report is shown to its own caller.
    callers: names.callers,
    undeclared: undefined,
    readability: (head, content) => readability(head, content, companion.isFromOwnCache),
    writtenTags: (_found, _args, _method, response, _shown, isReported = false) => {
      if (isReported || changedNothing(response)) return []
      const groups =
        options.tags === 'complete' && response !== undefined
          ? invalidatedGroups(names, response.headers)
          : []
      return groups.length > 0 ? groups : [names.all]
    },
    everything: names.all,
    changedTags: (changes) => changedTags(companion, names, changes),
  }
}
