import type { ServiceConfig } from '../config/config.ts'
import { isJsonObject, ownMember, parsedJson } from '../http/json-text.ts'
import type { Issue, Seen, UpstreamCheck } from '../service/connection.ts'
import { isFromObjectCache } from './tagger.ts'

const query = encodeURIComponent('{ __typename }')

const isStored = (response: Seen): boolean => {
  const value = response.kind === 'answer' ? parsedJson(response.content.toString()) : undefined
  return isJsonObject(value) && isFromObjectCache(ownMember(value, 'extensions'))
}

/** Asks twice: what WPGraphQL Smart Cache has stored at the first time it gives at the second. */
export const endpointIssues = async ({ ask, service }: UpstreamCheck): Promise<readonly Issue[]> => {
  const target = `${service.upstream.basePath}?query=${query}`
  await ask(target)
  if (!isStored(await ask(target))) return []
  return [
    {
      kind: 'object-cache',
      text: 'The object cache of WPGraphQL Smart Cache is on: responses from it may be older than WordPress and are not stored. Switch it off: GraphQL, Settings, Cache, "Use Object Cache".',
    },
  ]
}

/** Anonymous clients read the schema, unless the gateway refuses it or each of them is known. */
export const endpointHints = (service: ServiceConfig): readonly string[] =>
  service.contract === 'graphql' && service.graphql.introspection && service.access === undefined
    ? [
        'introspection is open: any client can read the schema. graphql.introspection: false refuses it, also where the upstream allows it',
      ]
    : []
