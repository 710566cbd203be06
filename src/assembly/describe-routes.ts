import type { Config, ServiceConfig } from '../config/config.ts'
import type { Endpoint, Row } from '../contracts/row.ts'
import { withAskedServices } from './drift-report.ts'
import { type ServiceContract, serviceContract } from './service-contract.ts'

/** One line of `trellis routes`: an endpoint of a row, under its public path. */
export type RouteLine = {
  readonly method: string
  readonly path: string
  readonly service: string
  /** How answers are cached, in few words; `-` when they are not. */
  readonly cached: string
  readonly batchable: boolean
  /** `learned`: the contract does not list it, the index of the upstream does. */
  readonly source: 'contract' | 'learned'
}

/** What `trellis routes` shows, and of which upstreams nothing could be learned. */
export type RouteReport = {
  readonly lines: readonly RouteLine[]
  readonly unread: readonly { readonly service: string; readonly reason: string }[]
}

const seconds = (ms: number): string => `${ms / 1000}s`

const cachedHow = (contract: ServiceContract, row: Row, endpoint: Endpoint): string => {
  if (!endpoint.methods.includes('GET')) return '-'
  if (row.handledBy === 'discovery') return 'by the gateway'
  const { rule, profile } = contract.policyFor('GET', row.template)
  if (rule === undefined) return profile === 'rfc-shared-cache' ? 'as RFC 9111 allows' : '-'
  return rule.scope === 'public' ? seconds(rule.ttlMs) : `${seconds(rule.ttlMs)} per credential`
}

const linesOf = (
  config: ServiceConfig,
  contract: ServiceContract,
  rows: readonly Row[],
  source: RouteLine['source'],
): RouteLine[] => {
  const mount = config.mount === '/' ? '' : config.mount
  return rows.flatMap((row) =>
    row.endpoints.map((endpoint) => ({
      method: row.template === '/**' ? '*' : endpoint.methods.join(','),
      path: `${mount}${row.template}`,
      service: config.name,
      cached: cachedHow(contract, row, endpoint),
      batchable: endpoint.allowBatch === true,
      source,
    })),
  )
}

/** Every route that the configuration serves by contract; what an upstream announces besides is learned at run time. */
export const describeRoutes = (config: Config): RouteReport => ({
  lines: config.services.flatMap((service) => {
    const contract = serviceContract(service, config.limits)
    return linesOf(service, contract, contract.rows, 'contract')
  }),
  unread: [],
})

/** The same with the routes that are learned from the upstreams, which are asked once each. */
export const describeLearnedRoutes = (config: Config): Promise<RouteReport> =>
  withAskedServices(config.services, config, (asked) => ({
    lines: asked.flatMap(({ built: { config: service, contract, discovery } }) => [
      ...linesOf(service, contract, contract.rows, 'contract'),
      ...linesOf(service, contract, discovery?.learned().rows ?? [], 'learned'),
    ]),
    unread: asked.flatMap(({ built, refusal }) =>
      refusal === undefined ? [] : [{ service: built.config.name, reason: refusal }],
    ),
  }))
