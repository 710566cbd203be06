import { type GatewayProcess, startGatewayProcess } from '../test/support/gateway-process.ts'
import { mount } from './batch-client.ts'

/** A gateway in front of a WordPress, as it comes but for an hour of caching. */
export const batchGateway = (
  origin: string,
  upstream: Record<string, unknown> = {},
): Promise<GatewayProcess> =>
  startGatewayProcess({
    log: { level: 'error' },
    services: {
      site: {
        contract: 'site',
        mount,
        names: 'same',
        discovery: { source: 'static', identity: { name: 'Bench' } },
        upstream: { targets: [origin], basePath: mount, ...upstream },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
      },
    },
  })
