import type { Config, ServiceConfig } from '../config/config.ts'
import type { RunningGateway } from './cli-ports.ts'

const batchBody = `{"requests":[{"path":"/site/v2/posts/1","body":{"title":"One"}},{"path":"/site/v2/posts/2","body":{"title":"Two"}}]}`

/** Who listens at every address is asked at loopback: the address that stands for all is none to connect to. */
const askedAt = (address: string): string =>
  address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')

const rootOf = (address: string, { mount }: ServiceConfig): string =>
  mount === '/' ? address : `${address}${mount}`

const siteLines = (root: string): string[] => [
  `  curl -i '${root}/site/v2/posts?per_page=2'`,
  '      # run it twice: the second response is a hit, see Cache-Status',
  `  curl -i '${root}/site/v2/posts?per_page=1000'`,
  '      # refused without an upstream request',
  `  curl -s -u admin:trellis-demo -H 'Content-Type: application/json' -d '${batchBody}' ${root}/batch/v1`,
  '      # a batch: two updates, one response',
]

const plantsLines = (root: string): string[] => [
  `  curl -i -H 'Authorization: Bearer anything' '${root}/plants?limit=3'`,
  '      # a plant store that requires a bearer token',
]

const linesOf = (address: string, service: ServiceConfig): string[] => {
  if (service.upstream.targets !== 'embedded') return []
  if (service.contract === 'plants') return plantsLines(rootOf(address, service))
  return service.contract === 'site' && service.names === 'wordpress'
    ? siteLines(rootOf(address, service))
    : []
}

/** What to try first; nothing when no upstream is embedded, because then people know what they are after. */
export const welcomeText = (config: Config, gateway: RunningGateway): string => {
  const tries = config.services.flatMap((service) => linesOf(askedAt(gateway.publicAddress), service))
  const where = `Trellis listens on ${gateway.publicAddress} (public) and ${gateway.adminAddress} (admin).\n`
  if (tries.length === 0) return where
  return `${where}\nTry:\n${tries.join('\n')}\n  curl -s ${askedAt(gateway.adminAddress)}/metrics | grep ^trellis_\n      # the metrics\n\n`
}
