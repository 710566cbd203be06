import type { TagNames } from '../cache/tag-names.ts'
import { parsedContent } from '../http/bodies/json-readability.ts'
import { headerValues } from '../http/headers/header-lines.ts'
import { isJsonObject, ownMember } from '../http/json-text.ts'
import type { Issue, UpstreamCheck } from '../service/connection.ts'
import type { TaggedResponse } from '../service/tagger.ts'
import { companionTags, type Described } from './tags/companion-tags.ts'

// What is known of WPGraphQL and of WPGraphQL Smart Cache behind a GraphQL endpoint.

const longestKey = 128

/** The keys by which Smart Cache purges. */
const smartCacheKeys = (names: TagNames, { headers }: TaggedResponse): readonly string[] =>
  headerValues(headers, 'x-graphql-keys')
    .flatMap((line) => line.split(/\s+/))
    .filter((key) => key !== '' && key.length <= longestKey)
    .map((key) => names.upstream(key))

/** What the companion says that a response shows, and the keys of Smart Cache, which are never complete. */
export const graphqlTags = (names: TagNames, response: TaggedResponse): Described => {
  const { tags, isComplete } = companionTags(names, response)
  return { tags: [...tags, ...smartCacheKeys(names, response)], isComplete }
}

/** Smart Cache took the response out of its object cache, which it saves without comparing versions. */
export const isFromObjectCache = (response: unknown): boolean => {
  const extensions = isJsonObject(response) ? ownMember(response, 'extensions') : undefined
  const smartCache = isJsonObject(extensions) ? ownMember(extensions, 'graphqlSmartCache') : undefined
  const objectCache = isJsonObject(smartCache) ? ownMember(smartCache, 'graphqlObjectCache') : undefined
  return isJsonObject(objectCache) && Object.keys(objectCache).length > 0
}

const query = encodeURIComponent('{ __typename }')

/** Asks twice: what the object cache has stored at the first time it gives at the second. */
export const objectCacheIssues = async ({ ask, service }: UpstreamCheck): Promise<readonly Issue[]> => {
  const target = `${service.upstream.basePath}?query=${query}`
  await ask(target)
  const second = await ask(target)
  if (second.kind === 'none' || !isFromObjectCache(parsedContent(second.content))) return []
  return [
    {
      kind: 'object-cache',
      text: 'The object cache of WPGraphQL Smart Cache is on: responses from it may be older than WordPress and are not stored. Switch it off: GraphQL, Settings, Cache, "Use Object Cache".',
    },
  ]
}
