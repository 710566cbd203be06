import { batchPath } from '../../contracts/openapi/operation.ts'
import type { Config, ServiceConfig } from '../config.ts'
import { faultOf, faultWhen, type UnplacedFault } from '../fault.ts'
import type { ConfigShape } from '../schema/shape.ts'
import { documentFaults } from './documents.ts'
import { tlsFaults } from './tls-faults.ts'

/** A limit must count by something verified: otherwise a client could send another key with each request. */
const countedByFault = (by: string, service: ServiceConfig | undefined): string | undefined => {
  if (service === undefined) return undefined
  if (by === 'key' && service.access?.apiKeys === undefined) return 'requires access.apiKeys of the service'
  return by.startsWith('claim:') && service.access?.jwt === undefined
    ? 'requires access.jwt of the service'
    : undefined
}

const accessFaults = (services: readonly ServiceConfig[]): UnplacedFault[] =>
  services.flatMap(({ name, access }) => {
    const path = ['services', name, 'access']
    const { jwt, apiKeys } = access ?? {}
    const headers = [jwt?.header, apiKeys?.header].filter((header) => header !== undefined)
    const claims = Object.entries(jwt?.forward ?? {})
    return [
      ...faultWhen(
        headers.length === 2 && headers[0] === headers[1],
        [...path, 'apiKeys', 'header'],
        'must differ from jwt.header',
      ),
      ...claims.flatMap(([claim, header], index) =>
        faultWhen(
          headers.includes(header) || claims.findIndex(([, other]) => other === header) !== index,
          [...path, 'jwt', 'forward', claim],
          'must differ from the headers of credentials and of other claims',
        ),
      ),
    ]
  })

const rateLimitFaults = ({ rateLimits, services }: Config): UnplacedFault[] =>
  rateLimits.flatMap(({ name, service, by }, index) => [
    ...faultOf(
      ['rateLimits', index, 'by'],
      countedByFault(
        by,
        services.find((one) => one.name === service),
      ),
    ),
    ...faultWhen(
      !services.some((one) => one.name === service),
      ['rateLimits', index, 'service'],
      `expected the name of a service: ${services.map((one) => one.name).join(', ')}`.slice(0, 200),
    ),
    ...faultWhen(
      rateLimits.findIndex((one) => one.name === name) !== index,
      ['rateLimits', index, 'name'],
      'another limit has the same name',
    ),
  ])

/** Faults of the public port's settings that show only when several are seen together. */
const edgeFaults = (config: Config): UnplacedFault[] => [
  ...faultWhen(
    config.cors.credentials && config.cors.origins.includes('*'),
    ['cors', 'credentials'],
    'requires origins by name: browsers refuse credentials for "*" (Fetch standard, CORS check)',
  ),
  ...faultWhen(
    config.limits.requestTimeoutMs > 0 && config.limits.headersTimeoutMs > config.limits.requestTimeoutMs,
    ['limits', 'headersTimeout'],
    'must be at most limits.requestTimeout, which includes it',
  ),
  ...faultWhen(
    config.limits.bufferedBytes < 2 * config.limits.bodyBytes,
    ['limits', 'bufferedBytes'],
    'must be at least twice limits.bodyBytes, because one client gets half of it and a body is read completely',
  ),
  ...config.services.flatMap((service) =>
    faultWhen(
      service.contract !== 'open' &&
        service.limits.bodyBytes !== config.limits.bodyBytes &&
        config.limits.bufferedBytes < 2 * service.limits.bodyBytes,
      ['services', service.name, 'limits', 'bodyBytes'],
      'must be at most half of limits.bufferedBytes, because one client gets half of it and a body is read completely',
    ),
  ),
  ...faultWhen(
    config.overload.intervalMs > 0 && config.overload.intervalMs < 100,
    ['overload', 'interval'],
    'must be 0s or at least 100ms, because a shorter interval measures too little',
  ),
  ...rateLimitFaults(config),
  ...config.services.flatMap((service) =>
    faultWhen(
      service.contract === 'open' && service.websockets && service.upstream.http2,
      ['services', service.name, 'websockets'],
      'requires upstream.http2: false, because WebSockets are opened over HTTP/1.1',
    ),
  ),
]

/** A request selects its service by host and mount, so no two services may have the same of both. */
const mountFaults = (services: readonly ServiceConfig[]): UnplacedFault[] =>
  services.flatMap((service, index) => {
    const sameMount = services.slice(0, index).filter(({ mount }) => mount === service.mount)
    const path = ['services', service.name]
    if (service.hosts.length === 0) {
      const other = sameMount.find(({ hosts }) => hosts.length === 0)
      return faultWhen(
        other !== undefined,
        [...path, 'mount'],
        `${service.mount} is already the mount of ${other?.name}: give each service its own path, or hosts`,
      )
    }
    return service.hosts.flatMap((host, at) => {
      const other = sameMount.find(({ hosts }) => hosts.includes(host))
      return [
        ...faultWhen(
          other !== undefined,
          [...path, 'hosts', at],
          `${service.name} and ${other?.name} both answer ${host} at ${service.mount}: give each its own host or path`,
        ),
        ...faultWhen(service.hosts.indexOf(host) < at, [...path, 'hosts', at], `${host} is listed twice`),
      ]
    })
  })

const hostFaults = (services: readonly ServiceConfig[]): UnplacedFault[] =>
  services.flatMap(({ name, contract, hosts, upstream }) =>
    faultWhen(
      contract === 'site' && upstream.host === 'preserve' && hosts.some((host) => host.startsWith('*')),
      ['services', name, 'hosts'],
      'with upstream.host: preserve a site has no wildcard, because each host may be another site: give each its own service',
    ),
  )

const responseHeaderFaults = (services: readonly ServiceConfig[]): UnplacedFault[] =>
  services.flatMap(({ name, responseHeaders: { set, remove } }) => {
    const path = ['services', name, 'responseHeaders', 'set']
    const names = Object.keys(set).map((one) => one.toLowerCase())
    const removed = remove.map((one) => one.toLowerCase())
    return Object.keys(set).flatMap((one, at) => [
      ...faultWhen(names.indexOf(names[at] ?? '') < at, [...path, one], 'the header is listed twice'),
      ...faultWhen(
        removed.includes(names[at] ?? ''),
        [...path, one],
        'the header is in remove as well; set replaces what is there',
      ),
    ])
  })

const sharedUrlFault = (url: string): string | undefined => {
  if (url === '') return undefined
  return URL.canParse(url) && /^rediss?:$/.test(new URL(url).protocol)
    ? undefined
    : 'expected a URL that starts with redis:// or rediss://'
}

/** Of the hexadecimal digits that are recommended, 128 bits. */
const leastKeyLength = 32

const sharedFaults = (config: Config): UnplacedFault[] => {
  const message = sharedUrlFault(config.cache.shared.url.reveal())
  const { forgetAfterMs, key, leaseMs, tls, url } = config.cache.shared
  const isTlsSet = tls.ca.isSet || tls.cert.isSet || tls.serverName !== ''
  return [
    ...faultOf(['cache', 'shared', 'url'], message),
    ...faultWhen(
      isTlsSet && message === undefined && !url.reveal().startsWith('rediss:'),
      ['cache', 'shared', 'tls'],
      'only works with a cache.shared.url that starts with rediss://',
    ),
    ...faultWhen(
      key.some((one) => one.reveal().length < leastKeyLength),
      ['cache', 'shared', 'key'],
      `expected at least ${leastKeyLength} characters: openssl rand -hex 32`,
    ),
    ...faultWhen(
      leaseMs < 100 || leaseMs > 60_000,
      ['cache', 'shared', 'lease'],
      'expected 100ms to 1m: a shorter lease ends during pauses of the process, a longer one delays writes',
    ),
    ...faultWhen(
      forgetAfterMs < 3 * leaseMs,
      ['cache', 'shared', 'forgetAfter'],
      'must be at least three times cache.shared.lease, so that an instance that is cut off stops before it is removed',
    ),
  ]
}

const staticIdentityFaults = (shape: ServiceSources): UnplacedFault[] =>
  Object.entries(shape).flatMap(([name, service]) =>
    faultWhen(
      service.contract === 'site' &&
        service.discovery.source === 'static' &&
        service.discovery.identity === undefined,
      ['services', name, 'discovery', 'identity'],
      'is required with source: static',
    ),
  )

/** The parsed file, which shows what the resolved config no longer does. */
type ServiceSources = ConfigShape['services']

const targetFaults = (shape: ServiceSources, services: readonly ServiceConfig[]): UnplacedFault[] =>
  services.flatMap(({ name, contract }) => {
    const targets = shape[name]?.upstream.targets ?? []
    const path = ['services', name, 'upstream', 'targets']
    const embedded = targets.includes('embedded')
    const hasDemo = contract !== 'open'
    return [
      ...faultWhen(embedded && !hasDemo, path, 'an open service has no embedded upstream'),
      ...faultWhen(
        embedded && hasDemo && targets.length > 1,
        path,
        'embedded cannot be combined with other targets',
      ),
      ...faultWhen(new Set(targets).size < targets.length, path, 'a target is listed twice'),
    ]
  })

const ejectFaults = (services: readonly ServiceConfig[]): UnplacedFault[] =>
  services.flatMap(({ name, upstream: { timeouts } }) => [
    ...faultWhen(
      timeouts.totalMs < timeouts.headersMs,
      ['services', name, 'upstream', 'timeouts', 'total'],
      'must be at least timeouts.headers, which is a part of it',
    ),
    ...faultWhen(
      timeouts.totalMs < timeouts.connectMs,
      ['services', name, 'upstream', 'timeouts', 'connect'],
      'must be at most timeouts.total, which includes it',
    ),
  ])

const healthFaults = (services: readonly ServiceConfig[]): UnplacedFault[] =>
  services.flatMap(({ name, upstream: { health } }) => {
    const path = ['services', name, 'upstream', 'health']
    if (health.path === '') return []
    return [
      ...faultWhen(
        health.intervalMs === 0,
        [...path, 'interval'],
        'must be more than 0s: otherwise checks never pause',
      ),
      ...faultWhen(
        health.timeoutMs === 0 && health.intervalMs > 0,
        [...path, 'timeout'],
        'must be more than 0s: otherwise no check can pass',
      ),
      ...faultWhen(
        health.timeoutMs > health.intervalMs,
        [...path, 'timeout'],
        'must be at most health.interval, because checks of a target do not overlap',
      ),
    ]
  })

/** Items are single requests with JSON, and their answers are held: an open service may stream anything. */
const batchFaults = (services: readonly ServiceConfig[]): UnplacedFault[] =>
  services.flatMap((service) => {
    const batch = service.contract === 'open' ? undefined : service.batch
    if (batch === undefined) return []
    const path = ['services', service.name, 'batch']
    const isTaken =
      service.contract === 'openapi' &&
      service.document.contract.rows.some(({ template }) => template === batchPath)
    const addressed = batch.services.flatMap((named, index) => {
      const meant = services.find(({ name }) => name === named)
      return faultWhen(
        meant === undefined || meant === service || meant.contract === 'open',
        [...path, 'services', index],
        'expected the name of another service with contract plants, site or openapi',
      )
    })
    return [...faultWhen(isTaken, path, `the document already has a path ${batchPath}`), ...addressed]
  })

/** Faults that show only when several values are seen together. */
export const crossChecks = (config: Config, services: ServiceSources): UnplacedFault[] => [
  ...faultWhen(
    config.admin.port !== 0 && config.admin.port === config.listen.port,
    ['admin', 'port'],
    `must differ from listen.port (${config.listen.port}): the admin side must not be public`,
  ),
  ...faultWhen(
    config.cache.maxEntryBytes > config.cache.maxBytes,
    ['cache', 'maxEntryBytes'],
    'must be at most cache.maxBytes, because a larger response cannot be stored',
  ),
  ...faultWhen(
    config.limits.urlBytes > config.limits.headerBytes,
    ['limits', 'urlBytes'],
    'must be at most limits.headerBytes, which includes the URL',
  ),
  ...sharedFaults(config),
  ...mountFaults(config.services),
  ...hostFaults(config.services),
  ...responseHeaderFaults(config.services),
  ...targetFaults(services, config.services),
  ...documentFaults(services, config.services),
  ...staticIdentityFaults(services),
  ...ejectFaults(config.services),
  ...healthFaults(config.services),
  ...batchFaults(config.services),
  ...accessFaults(config.services),
  ...tlsFaults(config),
  ...edgeFaults(config),
]
