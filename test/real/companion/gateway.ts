import { vi } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { freePort } from '../../support/ports.ts'
import { namedInInterface, namedInPages } from '../hit-ratio/noise.ts'
import type { TestPlugin } from '../wordpress/start-wordpress.ts'
import { token } from './intake.ts'
import { type CompanionSite, startCompanionStack } from './site.ts'

/** A WordPress with the companion behind a gateway, which it reports to; the address in its links is that of the gateway. */
export type SiteBehindGateway = {
  readonly site: CompanionSite
  readonly gateway: GatewayProcess
  /** Paths below it are the same at the gateway and at WordPress. */
  readonly restPath: string
  stop(): Promise<void>
}

const restPath = '/index.php/wp-json'

type SiteOptions = {
  /** Otherwise the plugin has no token, and the requests are named that write nothing. */
  readonly withCompanion?: boolean
  readonly plugins?: readonly TestPlugin[]
}

export const startSiteBehindGateway = async ({
  withCompanion = true,
  plugins = [],
}: SiteOptions = {}): Promise<SiteBehindGateway> => {
  const [port, adminPort] = [await freePort(), await freePort()] as const
  const site = await startCompanionStack(
    withCompanion ? { TRELLIS_GATEWAYS: `http://127.0.0.1:${adminPort}` } : { TRELLIS_TOKEN: '' },
    `http://127.0.0.1:${port}`,
    [],
    plugins,
  )
  try {
    const upstream = { targets: [site.origin] }
    const rules = [{ match: 'GET /wp/v2/**', ttl: withCompanion ? '1s' : '7d' }]
    const services = {
      site: {
        contract: 'site',
        mount: restPath,
        names: 'same',
        upstream: { ...upstream, basePath: restPath },
        cache: { rules, harmlessWrites: withCompanion ? [] : namedInInterface },
        ...(withCompanion ? { changes: { token, poll: '1s', ttlWhileHeard: '7d' } } : {}),
      },
      pages: {
        contract: 'open',
        mount: '/',
        upstream,
        cache: { harmlessWrites: withCompanion ? [] : namedInPages },
      },
    }
    const gateway = await startGatewayProcess({ services }, {}, [], [port, adminPort])
    const stop = async (): Promise<void> => {
      await gateway.stop()
      await site.stop()
    }
    const isHeard = async (): Promise<void> => {
      const text = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
      if (!/changes_state\{[^}]*"heard"[^}]*\} 1/.test(text)) throw new Error('the log is not read')
    }
    if (withCompanion) await vi.waitFor(isHeard, { timeout: 60_000, interval: 200 })
    return { site, gateway, restPath, stop }
  } catch (error) {
    await site.stop()
    throw error
  }
}
