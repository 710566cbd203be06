import { batchPath } from '../../openapi/document/operation.ts'
import type { Config, ServiceConfig } from '../config.ts'
import { faultAt, type UnplacedFault } from '../fault.ts'
import type { ConfigShape } from '../schema/shape.ts'
import { documentFaults } from './documents.ts'
import { tlsFaults } from './tls-faults.ts'

type Faults = Iterable<UnplacedFault>

function* accessFaults({ name, access }: ServiceConfig): Faults {
  const path = ['services', name, 'access']
  const { jwt, apiKeys } = access ?? {}
  const headers = [jwt?.header, apiKeys?.header].filter((header) => header !== undefined)
  if (headers.length === 2 && headers[0] === headers[1])
    yield faultAt([...path, 'apiKeys', 'header'], 'must differ from jwt.header')
  for (const [claim, header] of Object.entries(jwt?.forward ?? {})) {
    if (headers.includes(header))
      yield faultAt(
        [...path, 'jwt', 'forward', claim],
        'must differ from the headers of credentials and of other claims',
      )
    headers.push(header)
  }
}

function* rateLimitFaults({ rateLimits, services }: Config): Faults {
  for (const [index, { name, service, by }] of rateLimits.entries()) {
    const path = ['rateLimits', index]
    const named = services.find((one) => one.name === service)
    // A limit must count by something verified: otherwise a client could send another key with each request.
    if (by === 'key' && named !== undefined && named.access?.apiKeys === undefined)
      yield faultAt([...path, 'by'], 'requires access.apiKeys of the service')
    if (by.startsWith('claim:') && named !== undefined && named.access?.jwt === undefined)
      yield faultAt([...path, 'by'], 'requires access.jwt of the service')
    if (named === undefined) {
      const names = services.map((one) => one.name).join(', ')
      yield faultAt([...path, 'service'], `expected the name of a service: ${names}`.slice(0, 200))
    }
    if (rateLimits.findIndex((one) => one.name === name) !== index)
      yield faultAt([...path, 'name'], 'another limit has the same name')
  }
}

function* limitFaults({ limits, services }: Config): Faults {
  if (limits.urlBytes > limits.headerBytes)
    yield faultAt(['limits', 'urlBytes'], 'must be at most limits.headerBytes, which includes the URL')
  if (limits.bufferedBytes < 2 * limits.bodyBytes)
    yield faultAt(
      ['limits', 'bufferedBytes'],
      'must be at least twice limits.bodyBytes, because one client gets half of it and a body is read completely',
    )
  for (const service of services) {
    const bodyBytes = service.contract === 'open' ? limits.bodyBytes : service.limits.bodyBytes
    if (bodyBytes !== limits.bodyBytes && limits.bufferedBytes < 2 * bodyBytes)
      yield faultAt(
        ['services', service.name, 'limits', 'bodyBytes'],
        'must be at most half of limits.bufferedBytes, because one client gets half of it and a body is read completely',
      )
  }
}

/** A request selects its service by host and mount, so no two services may have the same of both. */
function* mountFaults(services: readonly ServiceConfig[]): Faults {
  for (const [index, { name, mount, hosts }] of services.entries()) {
    const path = ['services', name]
    const sameMount = services.slice(0, index).filter((one) => one.mount === mount)
    const hostless = sameMount.find((one) => one.hosts.length === 0)
    if (hosts.length === 0 && hostless !== undefined)
      yield faultAt(
        [...path, 'mount'],
        `${mount} is already the mount of ${hostless.name}: give each service its own path, or hosts`,
      )
    for (const [at, host] of hosts.entries()) {
      const other = sameMount.find((one) => one.hosts.includes(host))
      if (other !== undefined)
        yield faultAt(
          [...path, 'hosts', at],
          `${name} and ${other.name} both answer ${host} at ${mount}: give each its own host or path`,
        )
      if (hosts.indexOf(host) < at) yield faultAt([...path, 'hosts', at], `${host} is listed twice`)
    }
  }
}

function* responseHeaderFaults({ name, responseHeaders: { set, remove } }: ServiceConfig): Faults {
  const removed = remove.map((one) => one.toLowerCase())
  const seen = new Set<string>()
  for (const header of Object.keys(set)) {
    const path = ['services', name, 'responseHeaders', 'set', header]
    const lower = header.toLowerCase()
    if (seen.has(lower)) yield faultAt(path, 'the header is listed twice')
    if (removed.includes(lower))
      yield faultAt(path, 'the header is in remove as well; set replaces what is there')
    seen.add(lower)
  }
}

/** Of the hexadecimal digits that are recommended, 128 bits. */
const leastKeyLength = 32

function* sharedFaults({ cache: { shared } }: Config): Faults {
  const { forgetAfterMs, key, leaseMs, tls } = shared
  const path = ['cache', 'shared']
  const url = shared.url.reveal()
  if (url !== '' && !(URL.canParse(url) && /^rediss?:$/.test(new URL(url).protocol)))
    yield faultAt([...path, 'url'], 'expected a URL that starts with redis:// or rediss://')
  else if ((tls.ca.isSet || tls.cert.isSet || tls.serverName !== '') && !url.startsWith('rediss:'))
    yield faultAt([...path, 'tls'], 'only works with a cache.shared.url that starts with rediss://')
  if (key.some((one) => one.reveal().length < leastKeyLength))
    yield faultAt([...path, 'key'], `expected at least ${leastKeyLength} characters: openssl rand -hex 32`)
  if (leaseMs < 100 || leaseMs > 60_000)
    yield faultAt(
      [...path, 'lease'],
      'expected 100ms to 1m: a shorter lease ends during pauses of the process, a longer one delays writes',
    )
  if (forgetAfterMs < 3 * leaseMs)
    yield faultAt(
      [...path, 'forgetAfter'],
      'must be at least three times cache.shared.lease, so that an instance that is cut off stops before it is removed',
    )
}

function* upstreamFaults({ name, contract, hosts, upstream }: ServiceConfig): Faults {
  const path = ['services', name, 'upstream']
  const { health, timeouts } = upstream
  if (contract === 'site' && upstream.host === 'preserve' && hosts.some((host) => host.startsWith('*')))
    yield faultAt(
      ['services', name, 'hosts'],
      'with upstream.host: preserve a site has no wildcard, because each host may be another site: give each its own service',
    )
  if (timeouts.totalMs < timeouts.headersMs)
    yield faultAt([...path, 'timeouts', 'total'], 'must be at least timeouts.headers, which is a part of it')
  if (timeouts.totalMs < timeouts.connectMs)
    yield faultAt([...path, 'timeouts', 'connect'], 'must be at most timeouts.total, which includes it')
  if (health.path === '') return
  if (health.intervalMs === 0)
    yield faultAt([...path, 'health', 'interval'], 'must be more than 0s: otherwise checks never pause')
  else if (health.timeoutMs === 0)
    yield faultAt([...path, 'health', 'timeout'], 'must be more than 0s: otherwise no check can pass')
  if (health.timeoutMs > health.intervalMs)
    yield faultAt(
      [...path, 'health', 'timeout'],
      'must be at most health.interval, because checks of a target do not overlap',
    )
}

/** What the parsed file shows of a service and the resolved configuration no longer does. */
function* sourceFaults({ name }: ServiceConfig, source: ConfigShape['services'][string]): Faults {
  const { contract, upstream } = source
  const path = ['services', name, 'upstream', 'targets']
  const targets: readonly string[] = upstream.targets
  if (targets.includes('embedded')) {
    if (contract === 'open') yield faultAt(path, 'an open service has no embedded upstream')
    else if (targets.length > 1) yield faultAt(path, 'embedded cannot be combined with other targets')
  }
  if (new Set(targets).size < targets.length) yield faultAt(path, 'a target is listed twice')
  if (contract === 'site' && source.discovery.source === 'static' && source.discovery.identity === undefined)
    yield faultAt(['services', name, 'discovery', 'identity'], 'is required with source: static')
}

/** Items are single requests with JSON, and their answers are held: an open service may stream anything. */
function* batchFaults(service: ServiceConfig): Faults {
  if (service.contract === 'open' || service.batch === undefined) return
  const path = ['services', service.name, 'batch']
  if (
    service.contract === 'openapi' &&
    service.document.contract.rows.some(({ template }) => template === batchPath)
  )
    yield faultAt(path, `the document already has a path ${batchPath}`)
}

/** Faults that show only when several values are seen together. */
export function* crossChecks(config: Config, sources: ConfigShape['services']): Faults {
  const { admin, cache, cors, listen, overload, services } = config
  if (admin.port !== 0 && admin.port === listen.port)
    yield faultAt(
      ['admin', 'port'],
      `must differ from listen.port (${listen.port}): the admin side must not be public`,
    )
  if (cache.maxEntryBytes > cache.maxBytes)
    yield faultAt(
      ['cache', 'maxEntryBytes'],
      'must be at most cache.maxBytes, because a larger response cannot be stored',
    )
  if (cors.credentials && cors.origins.includes('*'))
    yield faultAt(
      ['cors', 'credentials'],
      'requires origins by name: browsers refuse credentials for "*" (Fetch standard, CORS check)',
    )
  if (overload.intervalMs > 0 && overload.intervalMs < 100)
    yield faultAt(
      ['overload', 'interval'],
      'must be 0s or at least 100ms, because a shorter interval measures too little',
    )
  yield* limitFaults(config)
  yield* rateLimitFaults(config)
  yield* sharedFaults(config)
  yield* tlsFaults(config)
  yield* mountFaults(services)
  for (const service of services) {
    const source = sources[service.name]
    yield* responseHeaderFaults(service)
    yield* upstreamFaults(service)
    if (source !== undefined) {
      yield* sourceFaults(service, source)
      yield* documentFaults(service, source)
    }
    yield* batchFaults(service)
    yield* accessFaults(service)
  }
}
