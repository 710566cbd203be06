import { vi } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { freePort } from '../../support/ports.ts'
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

export const startSiteBehindGateway = async (): Promise<SiteBehindGateway> => {
  const [port, adminPort] = [await freePort(), await freePort()] as const
  const site = await startCompanionStack(
    { TRELLIS_GATEWAYS: `http://127.0.0.1:${adminPort}` },
    `http://127.0.0.1:${port}`,
  )
  try {
    const service = {
      contract: 'site',
      mount: restPath,
      names: 'same',
      upstream: { targets: [site.origin], basePath: restPath },
      cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1s' }] },
      changes: { token, poll: '1s', ttlWhileHeard: '7d' },
    }
    const gateway = await startGatewayProcess({ services: { site: service } }, {}, [], [port, adminPort])
    const stop = async (): Promise<void> => {
      await gateway.stop()
      await site.stop()
    }
    const isHeard = async (): Promise<void> => {
      const text = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
      if (!/changes_state\{[^}]*"heard"[^}]*\} 1/.test(text)) throw new Error('the log is not read')
    }
    await vi.waitFor(isHeard, { timeout: 30_000, interval: 200 })
    return { site, gateway, restPath, stop }
  } catch (error) {
    await site.stop()
    throw error
  }
}
