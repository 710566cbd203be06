import { createSecureContext } from 'node:tls'
import type { Config, ServiceConfig } from '../config.ts'
import type { ContractConfig } from '../contract-config.ts'
import { faultAt, type Path, type UnplacedFault } from '../fault.ts'
import type { ConfigShape } from '../schema/shape.ts'

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
    const limitedService = services.find((candidate) => candidate.name === service)
    // A limit must count by something verified: otherwise a client could send another key with each request.
    if (by === 'key' && limitedService !== undefined && limitedService.access?.apiKeys === undefined)
      yield faultAt([...path, 'by'], 'requires access.apiKeys of the service')
    if (by.startsWith('claim:') && limitedService !== undefined && limitedService.access?.jwt === undefined)
      yield faultAt([...path, 'by'], 'requires access.jwt of the service')
    if (limitedService === undefined) {
      const names = services.map(({ name: serviceName }) => serviceName).join(', ')
      yield faultAt([...path, 'service'], `expected the name of a service: ${names}`.slice(0, 200))
    }
    if (rateLimits.findIndex((limit) => limit.name === name) !== index)
      yield faultAt([...path, 'name'], 'another limit has the same name')
  }
}

/** A fault names the key that is written, where the other one has its default. */
const defaults = { urlBytes: 8 * 1024, bufferedBytes: 32 * 1024 * 1024, adminPort: 9090 }

function* limitFaults({ limits, services }: Config): Faults {
  if (limits.urlBytes > limits.headerBytes)
    yield limits.urlBytes === defaults.urlBytes
      ? {
          ...faultAt(['limits', 'headerBytes'], 'must be at least limits.urlBytes (8KiB if it is not set)'),
          beside: ['limits', 'urlBytes'],
        }
      : faultAt(['limits', 'urlBytes'], 'must be at most limits.headerBytes, which includes the URL')
  if (limits.bufferedBytes < 2 * limits.bodyBytes)
    yield limits.bufferedBytes === defaults.bufferedBytes
      ? {
          ...faultAt(
            ['limits', 'bodyBytes'],
            'must be at most half of limits.bufferedBytes (32MiB if it is not set): raise that too',
          ),
          beside: ['limits', 'bufferedBytes'],
        }
      : faultAt(
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
    const sameMount = services.slice(0, index).filter((service) => service.mount === mount)
    const hostless = sameMount.find((service) => service.hosts.length === 0)
    if (hosts.length === 0 && hostless !== undefined)
      yield faultAt(
        [...path, 'mount'],
        `${mount} is already the mount of ${hostless.name}: give each service its own path, or hosts`,
      )
    for (const [at, host] of hosts.entries()) {
      const rival = sameMount.find((service) => service.hosts.includes(host))
      if (rival !== undefined)
        yield faultAt(
          [...path, 'hosts', at],
          `${name} and ${rival.name} both answer ${host} at ${mount}: give each its own host or path`,
        )
      if (hosts.indexOf(host) < at) yield faultAt([...path, 'hosts', at], `${host} is listed twice`)
    }
  }
}

function* responseHeaderFaults({ name, responseHeaders: { set, remove } }: ServiceConfig): Faults {
  const removedNames = remove.map((header) => header.toLowerCase())
  const names = new Set<string>()
  for (const header of Object.keys(set)) {
    const path = ['services', name, 'responseHeaders', 'set', header]
    const lower = header.toLowerCase()
    if (names.has(lower)) yield faultAt(path, 'the header is listed twice')
    if (removedNames.includes(lower))
      yield faultAt(path, 'the header is in remove as well; set replaces what is there')
    names.add(lower)
  }
}

/** Of the hexadecimal digits that are recommended, 128 bits. */
const minKeyLength = 32

function* sharedFaults({ cache: { shared } }: Config): Faults {
  const { forgetAfterMs, key, leaseMs, tls } = shared
  const path = ['cache', 'shared']
  const url = shared.url.reveal()
  if (url !== '' && !(URL.canParse(url) && /^rediss?:$/.test(new URL(url).protocol)))
    yield faultAt(
      [...path, 'url'],
      /^rediss?:/.test(url)
        ? 'expected a URL with a host and a port up to 65535, such as redis://10.0.0.5:6379'
        : 'expected a URL that starts with redis:// or rediss://',
    )
  else if ((tls.ca.isSet || tls.cert.isSet || tls.serverName !== '') && !url.startsWith('rediss:'))
    yield faultAt([...path, 'tls'], 'only works with a cache.shared.url that starts with rediss://')
  if (key.some((secret) => secret.reveal().length < minKeyLength))
    yield faultAt([...path, 'key'], `expected at least ${minKeyLength} characters: openssl rand -hex 32`)
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

const loopback = /^(?:127\.|\[?::1\]?$)/

const isListener = ({ host, port }: Config['listen'], target: string): boolean => {
  if (!URL.canParse(target)) return false
  const { hostname, port: writtenPort, protocol } = new URL(target)
  const isEvery = host === '0.0.0.0' || host === '::'
  const isHere = hostname === host || (isEvery && loopback.test(hostname))
  return isHere && Number(writtenPort || (protocol === 'https:' ? 443 : 80)) === port
}

/** A request to it would come back until it has passed the gateway too often (508). */
function* ownAddressFaults({ listen, services }: Config): Faults {
  for (const { name, upstream } of services) {
    const targets = upstream.targets === 'embedded' ? [] : upstream.targets
    const index = targets.findIndex((target) => isListener(listen, target))
    if (index !== -1)
      yield faultAt(
        ['services', name, 'upstream', 'targets', index],
        'is the address of the gateway itself: name the server behind it, or change listen.port',
      )
  }
}

/** What the parsed file shows of a service and the resolved configuration no longer does. */
function* sourceFaults({ name }: ServiceConfig, source: ConfigShape['services'][string]): Faults {
  const { contract, upstream } = source
  const path = ['services', name, 'upstream', 'targets']
  const targets: readonly string[] = upstream.targets
  if (targets.includes('embedded')) {
    if (contract === 'open' || contract === 'graphql')
      yield faultAt(path, `a service with contract ${contract} has no embedded upstream`)
    else if (targets.length > 1) yield faultAt(path, 'embedded cannot be combined with other targets')
  }
  if (new Set(targets).size < targets.length) yield faultAt(path, 'a target is listed twice')
  if (contract === 'site' && source.discovery.source === 'static' && source.discovery.identity === undefined)
    yield faultAt(['services', name, 'discovery', 'identity'], 'is required with source: static')
}

function* corsFaults({ credentials, origins }: Config['cors'], path: readonly string[]): Faults {
  if (credentials && origins.includes('*'))
    yield faultAt(
      [...path, 'cors', 'credentials'],
      'requires origins by name: browsers refuse credentials for "*" (Fetch standard, CORS check)',
    )
}

/** Faults that show only when several values are seen together. */
export function* crossChecks(
  config: Config,
  sources: ConfigShape['services'],
  contracts: Pick<ContractConfig, 'faults'>,
): Faults {
  const { admin, cache, cors, listen, overload, services } = config
  if (admin.port !== 0 && admin.port === listen.port)
    yield admin.port === defaults.adminPort
      ? {
          ...faultAt(
            ['listen', 'port'],
            'must differ from admin.port (9090 if it is not set): change one of both',
          ),
          beside: ['admin', 'port'],
        }
      : faultAt(
          ['admin', 'port'],
          `must differ from listen.port (${listen.port}): the admin side must not be public`,
        )
  if (cache.maxEntryBytes > cache.maxBytes)
    yield faultAt(
      ['cache', 'maxBytes'],
      'must be at least cache.maxEntryBytes (4MiB if it is not set), because a larger response cannot be stored: raise it, or lower that',
    )
  yield* corsFaults(cors, [])
  for (const service of services)
    if (service.cors !== cors) yield* corsFaults(service.cors, ['services', service.name])
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
  yield* ownAddressFaults(config)
  for (const service of services) {
    const source = sources[service.name]
    yield* responseHeaderFaults(service)
    yield* upstreamFaults(service)
    if (source !== undefined) {
      yield* sourceFaults(service, source)
      yield* contracts.faults(service, source)
    }
    yield* accessFaults(service)
  }
}

/** The error of OpenSSL for PEM texts; `undefined` when it accepts them. It does not quote the texts. */
const refusal = (options: { ca: string } | { cert: string; key: string }): string | undefined => {
  try {
    createSecureContext(options)
    return undefined
  } catch (cause) {
    return cause instanceof Error && 'code' in cause ? String(cause.code) : 'no PEM'
  }
}

/** A path of a file, as it is often given in place of the content. */
const fileLike = /^\/[\w./-]{1,200}\.(?:pem|crt|cer|cert|key)$/

/** Why the text is no certificate; a path is no secret and may be shown. */
const pemFault = (otherwise: string, texts: readonly string[], code: string): string => {
  const path = texts.find((text) => fileLike.test(text))
  return path === undefined
    ? `${otherwise}; write file:/path/to/file for a file (${code})`
    : `a file is written as file:${path}`
}

const isCertificate = (text: string): boolean => text.includes('-----BEGIN CERTIFICATE-----')

type TlsFiles = Pick<ServiceConfig['upstream']['tls'], 'ca' | 'cert' | 'key'>

function* clientCertificateFaults(path: Path, tls: TlsFiles): Iterable<UnplacedFault> {
  const [ca, cert, key] = [tls.ca.reveal(), tls.cert.reveal(), tls.key.reveal()]
  // OpenSSL accepts a text without any certificate, and then trusts none.
  const badCa = ca === '' ? undefined : isCertificate(ca) ? refusal({ ca }) : 'no PEM'
  if (badCa !== undefined) yield faultAt([...path, 'ca'], pemFault('is not a PEM certificate', [ca], badCa))
  if ((cert === '') !== (key === ''))
    yield faultAt([...path, cert === '' ? 'key' : 'cert'], 'a client certificate needs both cert and key')
  else if (cert !== '') yield* pairFaults(path, cert, key, refusal({ cert, key }))
}

function* pairFaults(
  path: Path,
  cert: string,
  key: string,
  code: string | undefined,
): Iterable<UnplacedFault> {
  if (code !== undefined)
    yield faultAt([...path, 'cert'], pemFault('cert and key do not match or are not PEM', [cert, key], code))
}

function* serverCertificateFaults(path: Path, tls: Pick<TlsFiles, 'cert' | 'key'>): Iterable<UnplacedFault> {
  const [cert, key] = [tls.cert.reveal(), tls.key.reveal()]
  if (cert === '' || key === '')
    yield faultAt([...path, cert === '' ? 'key' : 'cert'], 'TLS needs both cert and key')
  else yield* pairFaults(path, cert, key, isCertificate(cert) ? refusal({ cert, key }) : 'no PEM')
}

function* listenFaults({ listen: { tls, http2 } }: Config): Iterable<UnplacedFault> {
  const { certificates } = tls
  const path = ['listen', 'tls', 'certificates']
  if (!tls.cert.isSet && !tls.key.isSet) {
    if (http2)
      yield {
        ...faultAt(['listen', 'http2'], 'requires listen.tls: HTTP/2 is negotiated in the TLS handshake'),
        beside: ['listen', 'tls', 'cert'],
      }
    if (certificates.length > 0)
      yield faultAt(
        path,
        'requires listen.tls.cert and key, for clients that ask for another host or for none',
      )
    return
  }
  yield* serverCertificateFaults(['listen', 'tls'], tls)
  const hosts = new Set<string>()
  for (const [index, certificate] of certificates.entries()) {
    yield* serverCertificateFaults([...path, index], certificate)
    for (const [at, host] of certificate.hosts.entries()) {
      if (hosts.has(host)) yield faultAt([...path, index, 'hosts', at], `${host} is listed twice`)
      hosts.add(host)
    }
  }
}

/** Faults in the certificates for clients, for upstreams and for the shared store. */
function* tlsFaults(config: Config): Iterable<UnplacedFault> {
  yield* listenFaults(config)
  yield* clientCertificateFaults(['cache', 'shared', 'tls'], config.cache.shared.tls)
  for (const { name, upstream } of config.services)
    yield* clientCertificateFaults(['services', name, 'upstream', 'tls'], upstream.tls)
}
