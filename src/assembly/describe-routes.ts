import type { Config, ServiceConfig } from '../config/config.ts'
import type { Endpoint, Row } from '../contracts/row.ts'
import { type ServiceContract, serviceContract } from './service-contract.ts'

/** One line of `trellis routes`: an endpoint of a row, under its public path. */
export type RouteLine = {
  readonly method: string
  readonly path: string
  readonly service: string
  /** How answers are cached, in few words; `-` when they are not. */
  readonly cached: string
  readonly batchable: boolean
}

const seconds = (ms: number): string => `${ms / 1000}s`

const cachedHow = (contract: ServiceContract, row: Row, endpoint: Endpoint): string => {
  if (!endpoint.methods.includes('GET')) return '-'
  if (row.handledBy === 'discovery') return 'by the gateway'
  const { rule, profile } = contract.policyFor('GET', row.template)
  if (rule === undefined) return profile === 'rfc-shared-cache' ? 'as RFC 9111 allows' : '-'
  return rule.scope === 'public' ? seconds(rule.ttlMs) : `${seconds(rule.ttlMs)} per credential`
}

const linesOf = (config: ServiceConfig, contract: ServiceContract): RouteLine[] => {
  const mount = config.mount === '/' ? '' : config.mount
  return contract.rows.flatMap((row) =>
    row.endpoints.map((endpoint) => ({
      method: row.template === '/**' ? '*' : endpoint.methods.join(','),
      path: `${mount}${row.template}`,
      service: config.name,
      cached: cachedHow(contract, row, endpoint),
      batchable: endpoint.allowBatch === true,
    })),
  )
}

/** Every route that the configuration serves by contract; what an upstream announces besides is learned at run time. */
export const describeRoutes = (config: Config): readonly RouteLine[] =>
  config.services.flatMap((service) => linesOf(service, serviceContract(service, config.limits)))
