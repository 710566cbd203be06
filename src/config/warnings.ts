import * as zlib from 'node:zlib'
import { type Config, type ConfigWarning, type ServiceConfig, servesEveryReader } from './config.ts'
import type { ContractWarnings } from './contract-config.ts'
import { coversRule, mayMatchTemplate, type RuleMatch } from './rule-match.ts'

type WarningRow = {
  readonly path: string
  readonly isUsed: (config: Config) => boolean
  readonly message: string
}

const loopback = /^(127\.|localhost$|::1$)/

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, '')

const advice: readonly WarningRow[] = [
  {
    path: 'cache.compression.encodings',
    isUsed: ({ cache }) => cache.compression.encodings.includes('zstd') && !('zstdCompress' in zlib),
    message: 'zstd requires Node 22.15 or newer; only the other codings are used',
  },
  {
    path: 'cache.shared.key',
    isUsed: ({ cache: { shared } }) =>
      shared.url.isSet && shared.key.length === 0 && !loopback.test(hostOf(shared.url.reveal())),
    message:
      'is not set, and Redis is on another machine: anyone who can write to it can change responses and hide writes',
  },
  {
    path: 'rateLimits',
    isUsed: ({ rateLimits, workers, cache }) =>
      rateLimits.length > 0 && workers !== 1 && !cache.shared.url.isSet,
    message:
      'each worker admits its part of every limit, so that a client with one connection gets no more than that; with cache.shared.url the workers count together',
  },
  {
    path: 'trustedProxies',
    isUsed: ({ trustedProxies }) => trustedProxies.some((cidr) => cidr.endsWith('/0')),
    message:
      'every client may choose its address, by X-Forwarded-For: no limit and no access by address holds; list the proxies alone',
  },
  {
    path: 'admin.host',
    isUsed: ({ admin }) => !loopback.test(admin.host) && !admin.token.isSet,
    message:
      'other machines can reach the admin side, and admin.token is not set: they can read everything there, but change nothing',
  },
]

type Rule = ServiceConfig['cache']['rules'][number]

/** Why a rule matches nothing, by the first segments of its path. */
const mismatch = (service: ServiceConfig, match: RuleMatch): string | undefined => {
  const { segments } = match
  const mount = service.mount.split('/').filter((segment) => segment !== '')
  const isUnderMount = mount.length > 0 && mount.every((segment, at) => segments[at] === segment)
  if (isUnderMount)
    return `matches nothing: paths are relative to the mount, so write /${segments.slice(mount.length).join('/')}`
  if (service.contract === 'openapi') {
    const { operations } = service.document.contract
    const hasRoute = operations.some(({ method, template }) => mayMatchTemplate(match, method, template))
    return hasRoute ? undefined : 'matches nothing: the document has no such operation'
  }
  if (service.contract !== 'site' || service.upstream.basePath.endsWith('/site-json')) return undefined
  if (service.names === 'same' && segments[0] === 'site')
    return 'matches nothing: with names: same, paths are those of the upstream (/wp/v2/...)'
  if (service.names === 'wordpress' && segments[0] === 'wp')
    return 'matches nothing: the public names are neutral (/site/v2/...); names: same keeps those of WordPress'
  return undefined
}

const isOfOperation = (rule: Rule): boolean => 'operation' in rule && rule.operation !== ''

/** Why a rule has no effect; undefined when it has one. */
const uselessness = (service: ServiceConfig, rule: Rule, index: number): string | undefined => {
  const { rules, profile } = service.cache
  // Rules for one operation, and rules of a document, have no `match`.
  if (isOfOperation(rule)) return undefined
  const earlier = rules
    .slice(0, index)
    .find((candidate) => !isOfOperation(candidate) && coversRule(candidate.match, rule.match))
  if (earlier !== undefined) return `never applies: "${earlier.match.text}" comes first and matches all of it`
  if (service.contract === 'plants' && profile === 'safe' && rule.scope === 'public')
    return 'stores nothing: every request of a plant store has a credential; add scope: credential'
  return mismatch(service, rule.match)
}

function* documentWarnings(service: ServiceConfig): Iterable<ConfigWarning> {
  if (service.contract !== 'openapi') return
  const path = `services.${service.name}`
  if (service.document.contract.operations.length === 0)
    yield { path: `${path}.document`, message: 'describes no operation: every request gets 404' }
  if (service.resources.length > 0 && service.invalidation !== 'structural')
    yield { path: `${path}.resources`, message: 'has no effect without invalidation: structural' }
}

function* receiverWarnings(service: ServiceConfig, path: string): Iterable<ConfigWarning> {
  const { downstream } = service
  if (downstream?.key.isSet === false && downstream.receivers.every(({ secret }) => !secret.isSet))
    yield {
      path: `${path}.downstream.key`,
      message:
        'is not set, and no receiver has a secret: who guesses an id can see whether a response shows it',
    }
  if (downstream !== undefined && !servesEveryReader(service))
    yield {
      path: `${path}.downstream`,
      message: 'stores nothing: receivers know neither the addresses nor the credentials of `access`',
    }
}

function* serviceWarnings(service: ServiceConfig): Iterable<ConfigWarning> {
  const { upstream, access, cache } = service
  const path = `services.${service.name}`
  if (upstream.tls.acceptAnyCertificate)
    yield {
      path: `${path}.upstream.tls.acceptAnyCertificate`,
      message: 'certificates are not checked: an attacker in between can read and change everything',
    }
  yield* documentWarnings(service)
  if (service.contract === 'site' && service.names === 'wordpress' && service.mount.endsWith('/wp-json'))
    yield {
      path: `${path}.names`,
      message:
        'is wordpress, with which /wp/v2/posts is /site/v2/posts, and 404: write names: same, unless your clients know these names',
    }
  yield* receiverWarnings(service, path)
  const jwks = access?.jwt?.jwks ?? ''
  if (jwks.startsWith('http:') && !loopback.test(hostOf(jwks)))
    yield {
      path: `${path}.access.jwt.jwks`,
      message: 'is not https: an attacker in between can replace the keys, and make tokens',
    }
  for (const [index, rule] of cache.rules.entries()) {
    const message = uselessness(service, rule, index)
    if (message !== undefined) yield { path: `${path}.cache.rules[${index}].match`, message }
  }
}

/** Request headers that WordPress allows pages of other origins to send. */
const wordpressAllows = ['Authorization', 'X-WP-Nonce', 'Content-Disposition', 'Content-MD5', 'Content-Type']

/** Request headers that clients of a service send, with the reason. */
const headersOf = ({
  contract,
  access,
}: ServiceConfig): readonly (readonly [name: string, why: string])[] => [
  ...(contract === 'site' ? wordpressAllows.map((name) => [name, 'WordPress allows'] as const) : []),
  ...(access?.jwt === undefined ? [] : [[access.jwt.header, 'carries the tokens of access.jwt'] as const]),
  ...(access?.apiKeys === undefined
    ? []
    : [[access.apiKeys.header, 'carries the keys of access.apiKeys'] as const]),
]

/** Headers that `cors.headers` lacks, so that browsers do not send them from pages of other origins. */
export const headersThatCorsLacks = (
  { origins, headers }: Config['cors'],
  names: readonly string[],
): readonly string[] => {
  if (origins.length === 0) return []
  const allowedNames = new Set(headers.map((name) => name.toLowerCase()))
  return names.filter((name) => !allowedNames.has(name.toLowerCase()))
}

const corsWarnings = (general: Config['cors'], service: ServiceConfig): readonly ConfigWarning[] =>
  headersOf(service)
    .filter(([name]) => headersThatCorsLacks(service.cors, [name]).length > 0)
    .map(([name, why]) => ({
      path: service.cors === general ? 'cors.headers' : `services.${service.name}.cors.headers`,
      message: `lacks ${name}, which ${why} (services.${service.name}): pages of other origins cannot send it`,
    }))

export const configWarnings = (config: Config, ofContracts: ContractWarnings): readonly ConfigWarning[] => [
  ...advice.filter(({ isUsed }) => isUsed(config)).map(({ path, message }) => ({ path, message })),
  ...config.services.flatMap((service) => [
    ...serviceWarnings(service),
    ...ofContracts(service, config.services),
  ]),
  ...config.services.flatMap((service) => corsWarnings(config.cors, service)),
]

type SomeServices = {
  readonly services?: Readonly<Record<string, { readonly upstream?: { readonly targets?: unknown } }>>
}

/** A configuration, and its tree with the environment filled in. */
type Checked = { readonly config: Config; readonly filled: unknown }

/** A service without targets has a demo upstream, which its author may not expect. */
export const warningsOf = (
  { config, filled }: Checked,
  ofContracts: ContractWarnings,
): readonly ConfigWarning[] => [
  ...configWarnings(config, ofContracts),
  ...config.services
    .filter(({ name, upstream }) => {
      const targets = (filled as SomeServices | null)?.services?.[name]?.upstream?.targets
      return upstream.targets === 'embedded' && targets === undefined
    })
    .map(({ name }) => ({
      path: `services.${name}.upstream.targets`,
      message:
        'is not set, so that the embedded demo upstream is used, whose passwords are public; name your own servers',
    })),
]
