import { setTimeout as pause } from 'node:timers/promises'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { freePort } from '../../support/ports.ts'
import { token } from '../companion/intake.ts'
import { Browser } from '../companion/site.ts'
import type { TestPlugin } from '../wordpress/start-wordpress.ts'
import type { PluginName } from './archives.ts'
import { type Ids, idsOn } from './reads.ts'
import { type RealSite, startRealSite } from './start-real-site.ts'

/** Where a world has its interface. */
export const interfaceRoot = '/index.php/wp-json'
/** Where a world with WPGraphQL answers queries. */
export const graphqlEndpoint = '/graphql'

/** A real WordPress behind a gateway: its interface, its pages and, with WPGraphQL, its endpoint. */
export type World = {
  readonly site: RealSite
  readonly gateway: TestGateway
  readonly ids: Ids
  readonly withCompanion: boolean
  /** The administrator's browser, through the gateway. */
  readonly browser: Browser
  stop(): Promise<void>
}

type WorldOptions = {
  readonly plugins: readonly PluginName[]
  readonly withCompanion: boolean
  readonly testPlugins?: readonly TestPlugin[]
  /** How often the gateway reads the log of the companion. */
  readonly poll?: string
}

/** Also outside of a test, where nothing polls. */
const until = async (what: string, isTrue: () => Promise<boolean>): Promise<void> => {
  for (let times = 0; !(await isTrue()); times += 1) {
    if (times > 600) throw new Error(`not after a minute: ${what}`)
    await pause(100)
  }
}

export const openWorld = async ({
  plugins,
  withCompanion,
  testPlugins = [],
  poll = '1s',
}: WorldOptions): Promise<World> => {
  const port = await freePort()
  const gateways = [`http://127.0.0.1:${port}`]
  const site = await startRealSite({ plugins, withCompanion, gateways, testPlugins })
  const upstream = { targets: [site.origin] }
  const changes = withCompanion ? { changes: { token, poll } } : {}
  const graph = {
    ...{ contract: 'graphql', mount: graphqlEndpoint, upstream },
    cache: { rules: [{ match: 'query *', ttl: '1h' }] },
    ...changes,
  }
  const gateway = await startTestGateway({
    admin: { port },
    services: {
      blog: siteService(site.origin, {
        ...{ names: 'same', mount: interfaceRoot, discovery: { source: 'upstream' } },
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
        ...changes,
      }),
      ...(plugins.includes('graphql') ? { graph } : {}),
      pages: { contract: 'open', mount: '/', upstream, cache: { harmlessWrites: ['heartbeat'] } },
    },
  })
  const stop = async (): Promise<void> => {
    await gateway.close()
    await site.stop()
  }
  try {
    const index = `${gateway.publicAddress}${interfaceRoot}/`
    await until('the site answers', async () => (await fetch(index)).ok)
    const isHeard = async (): Promise<boolean> =>
      (await gateway.metric(
        'trellis_changes_state',
        `service="${plugins.includes('graphql') ? 'graph' : 'blog'}"`,
        'state="heard"',
      )) === 1
    if (withCompanion) await until('its changes are heard of', isHeard)
    const browser = new Browser(gateway.publicAddress)
    await browser.login()
    return { site, gateway, ids: await idsOn(site.origin), withCompanion, browser, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
