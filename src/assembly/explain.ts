import { decideCaching } from '../cache/decide-caching.ts'
import { sensitiveParameter } from '../cache/sensitive-parameter.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import type { RequestFields } from '../http/fields.ts'
import { requestMeaning } from '../routing/request-meaning.ts'
import { type ServiceContract, serviceContract } from './service-contract.ts'

/** A request that somebody asks about; nothing is sent anywhere. */
export type ExplainedRequest = {
  readonly method: string
  /** Path and query on the public side. */
  readonly target: string
  /** Lower-case names. */
  readonly fields: RequestFields
}

/** What would happen, aspect by aspect, in the order in which it is decided. */
export type Explanation = Readonly<Record<string, unknown>>

const under = (mount: string, path: string): string | undefined => {
  if (mount === '/') return path
  if (path === mount) return '/'
  return path.startsWith(`${mount}/`) ? path.slice(mount.length) : undefined
}

const serviceFor = (config: Config, path: string): ServiceConfig | undefined =>
  config.services
    .filter(({ mount }) => under(mount, path) !== undefined)
    .sort((a, b) => b.mount.length - a.mount.length)[0]

const cachingOf = (
  contract: ServiceContract,
  method: string,
  path: string,
  query: string,
  fields: RequestFields,
): Explanation => {
  const policy = contract.policyFor(method, path)
  const sensitive = sensitiveParameter(query)
  const decision = decideCaching({ method, fields, hasContent: false, sensitive }, policy)
  const rule =
    policy.rule === undefined
      ? 'none'
      : `ttl ${policy.rule.ttlMs} ms, stale-while-revalidate ${policy.rule.staleWhileRevalidateMs} ms, stale-if-error ${policy.rule.staleIfErrorMs} ms`
  switch (decision.kind) {
    case 'read':
      return { cache: `read, ${decision.partition}`, rule, profile: policy.profile }
    case 'write':
      return { cache: 'write: invalidates', profile: policy.profile }
    case 'bypass':
      return { cache: `bypass: ${decision.reason}`, rule, profile: policy.profile }
  }
}

const known = (
  service: ServiceConfig,
  contract: ServiceContract,
  method: string,
  path: string,
  query: string,
  fields: RequestFields,
): Explanation => {
  const finding = contract.find(method, path)
  switch (finding.kind) {
    case 'refused':
      return { refused: `path: ${finding.reason}` }
    case 'wrong-method':
      return { row: finding.row.template, refused: 'method' }
    case 'options':
      return { row: finding.row.template, answer: 'schema of the route' }
    case 'unlisted': {
      const passes = service.contract === 'site' && service.unlistedRoutes !== 'refuse'
      return { row: 'unlisted', answer: passes ? 'passed on, unless the upstream announces it' : '404' }
    }
    case 'found': {
      const { row, endpoint, pathParameters } = finding
      const validation = contract.validator.validate({
        method,
        row,
        endpoint,
        pathParameters,
        query,
        contentType: undefined,
        content: undefined,
      })
      if (validation.kind === 'invalid') {
        return { row: row.template, refused: `${validation.status} ${validation.code}` }
      }
      const canonical = validation.query === '' ? finding.path : `${finding.path}?${validation.query}`
      return {
        row: row.template,
        'canonical target': canonical,
        ...(service.contract === 'plants' && fields['authorization'] === undefined
          ? { refused: '401: no bearer token' }
          : {}),
        ...(row.handledBy === 'upstream'
          ? cachingOf(contract, method, finding.path, validation.query, fields)
          : { answer: 'by the gateway' }),
      }
    }
  }
}

/** What the gateway would make of a request, by the same functions that decide it. */
export const explain = (config: Config, { method, target, fields }: ExplainedRequest): Explanation => {
  const [path = '/', ...rest] = target.split('?')
  const query = rest.join('?')
  const service = serviceFor(config, path)
  if (service === undefined) return { refused: '404: no service is mounted there' }
  const inside = under(service.mount, path) ?? path
  const meaning =
    service.contract === 'site' ? requestMeaning(method, query, fields) : { kind: 'method' as const, method }
  if (meaning.kind === 'refused') return { service: service.name, refused: meaning.reason }
  return {
    service: service.name,
    method: meaning.method,
    ...known(service, serviceContract(service, config.limits), meaning.method, inside, query, fields),
  }
}
