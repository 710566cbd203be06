import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { caseHeader, type Relay } from './relay.ts'
import type { Behind } from './run-cases.ts'

const mounts = { same: '/same/wp-json', wordpress: '/neutral/site-json' } as const

/** A gateway with two services in front of the WordPress behind each relay: one for either kind of names. */
export async function startBothNames(relays: {
  readonly same: Relay
  readonly wordpress: Relay
}): Promise<{ readonly gateway: TestGateway; readonly services: readonly Behind[] }> {
  const modes = ['same', 'wordpress'] as const
  const services = modes.map((names) => ({
    contract: 'site',
    mount: mounts[names],
    names,
    upstream: { targets: [relays[names].origin], basePath: '/index.php/wp-json' },
    cache: { rules: [{ match: 'GET /*/v2/**', ttl: '60s' }], harmlessFields: [caseHeader] },
  }))
  const gateway = await startTestGateway({ services: { same: services[0], neutral: services[1] } })
  const origin = gateway.publicAddress
  const behind = modes.map((names): Behind => {
    const restRoot = origin + mounts[names]
    return {
      title: `names: ${names}`,
      site: { restRoot, names: names === 'same' ? 'wordpress' : 'neutral' },
      origin,
      mount: mounts[names],
      relay: relays[names],
    }
  })
  for (const { site } of behind) await untilLearned(site.restRoot, site.names === 'neutral' ? 'site' : 'wp')
  return { gateway, services: behind }
}

/** The rows of routes that the contract does not list are made when the index of the upstream has come. */
async function untilLearned(restRoot: string, prefix: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const response = await fetch(`${restRoot}/${prefix}/v2/categories?per_page=0`)
    await response.arrayBuffer()
    const index = await fetch(`${restRoot}/`)
    await index.arrayBuffer()
    if (response.headers.get('cache-status') === null && response.status === 400 && index.ok) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('the gateway has not learned the routes of the upstream')
}
