import type { Config, DownstreamConfig } from '../../src/config/config.ts'
import { Secret } from '../../src/config/secret.ts'
import { type FrontKind, settleMs } from './receivers/front.ts'
import { receiverSecret } from './receivers/secret.ts'
import type { Interface } from './services/interface.ts'

/** How the gateways of a run are configured. */
export type MemberSettings = {
  /** Several instances on one Redis. */
  readonly hasRedis: boolean
  readonly isSigning: boolean
  readonly contract: Interface['kind']
  /** A second service at the same upstream. */
  readonly hasGraphql: boolean
  readonly refuses: boolean
  readonly leaseMs: number
  readonly forgetAfterMs: number
  /** Longest time of a request to the upstream; a late write is carried out within twice this time. */
  readonly totalMs: number
  readonly ttlMs: number
  /** Of 404. */
  readonly negativeTtlMs: number
  /** 0: none. */
  readonly batchDeadlineMs: number
  /** Of batches of a site. */
  readonly batchSplit: 'item' | 'chunk' | 'whole' | 'auto'
  /** A cache in front of all members, without whose confirmation nothing is acknowledged. */
  readonly hasFront: boolean
  readonly frontKind: FrontKind
  readonly staleWhileRevalidateMs: number
  readonly staleIfErrorMs: number
}

const none = new Secret('')

const tagHeaders: Readonly<Record<FrontKind, DownstreamConfig['tags']>> = {
  varnish: 'xkey',
  fastly: 'Surrogate-Key',
  cloudflare: 'Cache-Tag',
  webhook: 'Surrogate-Key',
  next: 'Surrogate-Key',
}

const downstreamOf = (type: FrontKind): DownstreamConfig => ({
  tags: tagHeaders[type],
  lifetimeMs: 60_000,
  settleMs,
  key: none,
  receivers: [
    {
      ...{ type, url: 'http://front.test/', instances: 'one', onFailure: 'refuse' },
      ...{ timeoutMs: 500, secret: new Secret(receiverSecret), service: '', zone: '', ca: none },
    },
  ],
})

export const maxEntryBytes = 65_536

/** What a member reads of the configuration. */
export const configOf = (settings: MemberSettings): Config => {
  const { forgetAfterMs, hasGraphql, hasRedis, isSigning, leaseMs, refuses } = settings
  const shared = {
    url: new Secret(hasRedis ? 'redis://redis.test:6379' : ''),
    cluster: false,
    prefix: 'sim',
    key: isSigning ? [new Secret('a key of thirty-two characters!!')] : [],
    leaseMs,
    forgetAfterMs,
    tls: { ca: new Secret(''), cert: new Secret(''), key: new Secret(''), serverName: '' },
    writes: refuses ? 'refuse-while-cut-off' : 'go-on',
  }
  const downstream = settings.hasFront ? downstreamOf(settings.frontKind) : undefined
  const upstream = { maxConcurrent: 64, clientShare: 1, timeouts: { headersMs: 0 } }
  const batch = {
    ...{ maxItems: 25, concurrency: 4, deadlineMs: settings.batchDeadlineMs, answerBytes: 1_000_000 },
    ...{ split: settings.batchSplit, idempotency: { ttlMs: 60_000, maxBytes: 1_000_000 } },
  }
  const service = { downstream, access: undefined, upstream, cache: { rules: [] } }
  const services = [
    { ...service, name: 'site', ...(settings.contract === 'open' ? {} : { batch }) },
    ...(hasGraphql ? [{ ...service, name: 'graphql' }] : []),
  ]
  return { cache: { shared, maxEntryBytes }, services } as unknown as Config
}
