import { setTimeout as pause } from 'node:timers/promises'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { freePort } from '../../support/ports.ts'
import { token } from '../companion/intake.ts'
import { Browser } from '../companion/site.ts'
import type { PluginName } from '../sites/archives.ts'
import { type Ids, idsOn } from '../sites/reads.ts'
import { type RealSite, startRealSite } from '../sites/start-real-site.ts'

const endpoint = '/graphql'
const root = '/index.php/wp-json'

/** A WordPress with WPGraphQL behind a gateway: its interface, its endpoint and its pages. */
export type GraphqlWorld = {
  readonly site: RealSite
  readonly gateway: TestGateway
  readonly ids: Ids
  readonly withCompanion: boolean
  /** The administrator's browser, through the gateway. */
  readonly browser: Browser
  stop(): Promise<void>
}

/** Also outside of a test, where nothing polls. */
const until = async (what: string, isTrue: () => Promise<boolean>): Promise<void> => {
  for (let times = 0; !(await isTrue()); times += 1) {
    if (times > 600) throw new Error(`not after a minute: ${what}`)
    await pause(100)
  }
}

export const openGraphqlWorld = async (
  withCompanion: boolean,
  plugins: readonly PluginName[] = ['graphql', 'scf'],
): Promise<GraphqlWorld> => {
  const port = await freePort()
  const gateways = [`http://127.0.0.1:${port}`]
  const site = await startRealSite({ plugins, withCompanion, gateways, testPlugins: ['graphql-for-tests'] })
  const upstream = { targets: [site.origin] }
  const changes = withCompanion ? { changes: { token, poll: '1s' } } : {}
  const gateway = await startTestGateway({
    admin: { port },
    services: {
      blog: siteService(site.origin, {
        ...{ names: 'same', mount: root, discovery: { source: 'upstream' } },
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
        ...changes,
      }),
      graph: {
        ...{ contract: 'graphql', mount: endpoint, upstream },
        cache: { rules: [{ match: 'query *', ttl: '1h' }] },
        ...changes,
      },
      pages: { contract: 'open', mount: '/', upstream, cache: { harmlessWrites: ['heartbeat'] } },
    },
  })
  await until('the site answers', async () => (await fetch(`${gateway.publicAddress}${root}/`)).ok)
  if (withCompanion)
    await until(
      'its changes are heard of',
      async () => (await gateway.metric('trellis_changes_state', 'service="graph"', 'state="heard"')) === 1,
    )
  const browser = new Browser(gateway.publicAddress)
  await browser.login()
  return {
    ...{ site, gateway, ids: await idsOn(site.origin), withCompanion, browser },
    stop: async () => {
      await gateway.close()
      await site.stop()
    },
  }
}

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
