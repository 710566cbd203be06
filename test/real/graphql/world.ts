import type { PluginName } from '../sites/archives.ts'
import { graphqlEndpoint as endpoint, openWorld, type World } from '../sites/open-world.ts'

/** A WordPress with WPGraphQL behind a gateway. */
export type GraphqlWorld = World

export const openGraphqlWorld = (
  withCompanion: boolean,
  plugins: readonly PluginName[] = ['graphql', 'scf'],
): Promise<GraphqlWorld> => openWorld({ plugins, withCompanion, testPlugins: ['graphql-for-tests'] })

/** Addresses differ by their ports alone; how long a request took is in no result. */
const resultOf = (response: unknown): string => {
  const { data } = response as { readonly data?: unknown }
  return JSON.stringify(data ?? null).replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, '@')
}

const post = (url: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

export type Shown = { readonly isHit: boolean; readonly result: string }

/** What a query gets through the gateway. */
export const ask = async ({ gateway }: GraphqlWorld, query: string): Promise<Shown> => {
  const response = await post(gateway.publicAddress + endpoint, { query })
  const isHit = (response.headers.get('cache-status') ?? '').startsWith('trellis; hit')
  return { isHit, result: resultOf(await response.json()) }
}

/** What WordPress itself says to all queries at this moment, in one request. */
export const askWordPress = async (
  { site }: GraphqlWorld,
  queries: readonly string[],
): Promise<readonly string[]> => {
  if (queries.length === 0) return []
  const response = await post(
    site.origin + endpoint,
    queries.map((query) => ({ query })),
  )
  return ((await response.json()) as readonly unknown[]).map(resultOf)
}

/** Sends mutations through the gateway; several are one list. */
export const mutate = async (
  { gateway }: Pick<GraphqlWorld, 'gateway'>,
  documents: readonly string[],
  headers: Readonly<Record<string, string>>,
): Promise<string> => {
  const operations = documents.map((query) => ({ query }))
  const body = operations.length === 1 ? operations[0] : operations
  return (await post(gateway.publicAddress + endpoint, body, headers)).text()
}
