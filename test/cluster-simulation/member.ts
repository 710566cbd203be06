import type { Readable } from 'node:stream'
import { Cache } from '../../src/cache/cache.ts'
import type { CacheRule } from '../../src/cache/decide-caching.ts'
import type { Purge } from '../../src/cache/invalidation.ts'
import type { Clock } from '../../src/clock.ts'
import type { WorkerLink } from '../../src/cluster/worker-link.ts'
import type { Config, DownstreamConfig } from '../../src/config/config.ts'
import { Secret } from '../../src/config/secret.ts'
import { ConfigSnapshot } from '../../src/exchange/config-snapshot.ts'
import { type HandleDeps, handle } from '../../src/exchange/handle.ts'
import { arrived } from '../../src/exchange/request-context.ts'
import type { Service } from '../../src/exchange/service.ts'
import { createWritesInFlight } from '../../src/exchange/writes-in-flight.ts'
import { operatorCache } from '../../src/gateway/admin/operator-cache.ts'
import { Broadcast } from '../../src/gateway/parts/broadcast.ts'
import { connectDownstreams, type Downstreams } from '../../src/gateway/parts/downstreams.ts'
import { prepareMembership } from '../../src/gateway/parts/membership.ts'
import { unlimited } from '../../src/http/bounds/byte-budget.ts'
import { EndSignal } from '../../src/http/end-signal.ts'
import type { GatewayRequest, GatewayResponse } from '../../src/http/message.ts'
import type { Metrics } from '../../src/observability/metrics.ts'
import type { Contract } from '../../src/service/contract.ts'
import { createOpenContract } from '../../src/service/open.ts'
import { createTargetMemo } from '../../src/service/target-memo.ts'
import type { UpstreamOptions } from '../../src/upstream/options.ts'
import { createUpstream } from '../../src/upstream/upstream.ts'
import { siteContract, siteService } from '../exchange/exchange-of.ts'
import { settleMs } from './front.ts'
import type { Interface } from './interfaces.ts'
import { currentProcess, type Process, world } from './world.ts'

/** How the gateways of a run are configured. */
export type MemberSettings = {
  /** Several instances on one Redis. */
  readonly hasRedis: boolean
  readonly isSigning: boolean
  readonly contract: Interface['kind']
  readonly refuses: boolean
  readonly leaseMs: number
  readonly forgetAfterMs: number
  /** Longest time of a request to the upstream; a late write is carried out within twice this time. */
  readonly totalMs: number
  readonly ttlMs: number
  /** A cache in front of all members, without whose confirmation nothing is acknowledged. */
  readonly hasFront: boolean
  readonly staleWhileRevalidateMs: number
  readonly staleIfErrorMs: number
}

const clockOf = (process: Process): Clock => ({
  now: () => world.wallOf(process),
  monotonic: () => world.monotonicOf(process),
})

const maxEntryBytes = 65_536

const none = new Secret('')

const downstreamConfig: DownstreamConfig = {
  tags: 'xkey',
  lifetimeMs: 60_000,
  settleMs,
  key: none,
  receivers: [
    {
      ...{ type: 'varnish', url: 'http://front.test/', instances: 'one', onFailure: 'refuse' },
      ...{ timeoutMs: 500, secret: none, service: '', zone: '', ca: none },
    },
  ],
}

/** What a member reads of the configuration. */
const configOf = (settings: MemberSettings): Config => {
  const { forgetAfterMs, hasFront, hasRedis, isSigning, leaseMs, refuses } = settings
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
  const site = { name: 'site', downstream: hasFront ? downstreamConfig : undefined, access: undefined }
  return { cache: { shared, maxEntryBytes }, services: [site] } as unknown as Config
}

const ignore = (): void => undefined

const metrics = {
  observe: { sharedTier: ignore, coherence: ignore, downstream: ignore },
} as unknown as Metrics

const anyService = siteService()

const upstreamOptions = (totalMs: number): UpstreamOptions => ({
  service: 'site',
  targets: ['http://one.test', 'http://two.test'],
  basePath: '',
  maxConcurrent: 64,
  queue: { max: 64, timeoutMs: 100 },
  clientShare: 1,
  minBytesPerSecond: 0,
  timeouts: { connectMs: 0, headersMs: 0, idleMs: totalMs, totalMs },
  retry: { attempts: 2, budget: 0.2 },
  breaker: { failureRatio: 0.5, minRequests: 20, windowMs: 10_000, forMs: 200, probes: 2 },
  eject: { after: 3, forMs: 100, maxShare: 0.5 },
  health: { path: '', intervalMs: 0, timeoutMs: 0, expect: [], failAfter: 1, recoverAfter: 1 },
  tls: { ca: '', cert: '', key: '', serverName: '', minVersion: 'TLSv1.2', acceptAnyCertificate: false },
  headerBytes: 16_384,
  hostHeader: '',
  connectionMaxAgeMs: 0,
})

const serviceOf = (settings: MemberSettings, clock: Clock, downstreams: Downstreams): Service => {
  const { staleIfErrorMs, staleWhileRevalidateMs, totalMs, ttlMs } = settings
  const [site] = configOf(settings).services
  if (site === undefined) throw new Error('no service')
  const rule: CacheRule = {
    ttlMs,
    staleWhileRevalidateMs,
    staleIfErrorMs,
    override: false,
    negativeTtlMs: 0,
    scope: 'public',
  }
  const policyFor: Contract['policyFor'] = (method) => ({
    profile: 'safe',
    rule: method === 'GET' ? rule : undefined,
  })
  const open = { limits: { queryParameters: 64 }, policyFor }
  const contract =
    settings.contract === 'site'
      ? siteContract({ policyFor })
      : createOpenContract({ name: 'site', cache: { rules: [] } } as never, {
          ...open,
          uncacheableReasonOf: () => undefined,
          actsAsWrite: () => false,
        })
  return {
    ...anyService,
    contract,
    address: { ...anyService.address, basePath: '' },
    memo: createTargetMemo(100),
    limits: { ...anyService.limits, uploadBytes: 100_000, upstreamMs: totalMs },
    responses: { ...anyService.responses, contentId: () => '', downstream: downstreams.of(site, contract) },
    upstream: createUpstream(upstreamOptions(totalMs), { clock, random: Math.random, report: ignore }),
  }
}

/** `half`: a content that is too long to be read before it is sent, and never ends. */
type SimulatedWrite = Interface['write'] & { readonly name: string; readonly half: Readable | undefined }

const client = { address: '127.0.0.1', protocol: 'https', viaTrustedProxy: false } as const

/** One process of a gateway: the code of src from the request of a client to the request to the upstream. */
export const startMember = async (settings: MemberSettings, worker: WorkerLink | undefined) => {
  const process = currentProcess()
  const clock = clockOf(process)
  const config = configOf(settings)
  const logger = {
    info: (facts: object, message: string) => {
      if (world.isTraced) world.note(`${process.name}: ${message} ${JSON.stringify(facts)}`)
    },
    warn: (facts: object, message: string) => {
      if (world.isTraced) world.note(`${process.name}: ${message} ${JSON.stringify(facts)}`)
    },
  }
  const membership = await prepareMembership({ config, clock, logger, metrics, worker })
  const cache = new Cache({
    ...membership?.forCache,
    maxBytes: 1_000_000,
    maxHeapBytes: Number.POSITIVE_INFINITY,
    maxEntryBytes,
    admission: 'always',
    budget: () => unlimited,
    compression: { codings: [], minBytes: 1_000_000 },
    clock,
    report: ignore,
  })
  const downstreams = connectDownstreams({ clock, metrics, logger })
  const coherence = membership?.join({
    cache,
    documentsStale: ignore,
    changedElsewhere: downstreams.changedElsewhere,
  })
  const broadcast = new Broadcast(coherence, downstreams)
  const writeRegistry = broadcast.writeRegistryFor(config)
  const writes = createWritesInFlight()
  const context = {
    clock,
    cache,
    writes,
    ...(writeRegistry === undefined ? {} : { writeRegistry }),
    partitionOf: (credential: string) => credential,
    finished: ignore,
    report: ignore,
    failed: ignore,
    forwarding: { via: 'simulation' },
    budget: () => unlimited,
    limits: undefined,
    compress: undefined,
    watches: [],
    spans: undefined,
    overload: undefined,
    batchOf: () => undefined,
  } as Partial<HandleDeps> as HandleDeps
  let service = serviceOf(settings, clock, downstreams)
  downstreams.use([service])
  let snapshot = new ConfigSnapshot([service])
  const response = async (target: string, request: Partial<GatewayRequest>): Promise<GatewayResponse> => {
    const [path = '', query = ''] = target.split('?')
    return handle(
      context,
      arrived({
        id: 'id',
        origin: 'client',
        client,
        snapshot,
        service,
        request: {
          method: 'GET',
          target,
          headers: {},
          content: undefined,
          signal: new EndSignal() as unknown as AbortSignal,
          ...request,
        },
        path,
        query,
      }),
    )
  }
  const operator = operatorCache({
    cache,
    openWrites: writes.open,
    warmer: { add: () => ({ added: 0, results: [] }) },
    broadcast,
    worker: undefined,
    refusesUnacknowledged: settings.refuses,
  })
  await coherence?.start()
  return {
    read: (target: string, signal: AbortSignal): Promise<GatewayResponse> => response(target, { signal }),
    write: (
      target: string,
      { name, method, headers, content, half }: SimulatedWrite,
    ): Promise<GatewayResponse> =>
      response(target, {
        method,
        headers: {
          ...headers,
          'x-write': name,
          ...(half === undefined ? {} : { 'content-length': '65536' }),
        },
        content: half ?? content,
      }),
    purge: (selector: Purge['selector']): Promise<number | 'unacknowledged'> =>
      operator.purge({ selectors: [selector], mode: 'hard', dryRun: false }),
    /** The next configuration has a new service in the place of the old one, with the same rules. */
    reload: (): void => {
      void service.upstream.close()
      service = serviceOf(settings, clock, downstreams)
      downstreams.use([service])
      const next = new ConfigSnapshot([service])
      snapshot.replaceBy(next)
      snapshot = next
    },
    close: async (): Promise<void> => {
      // In the order of src/gateway/running-gateway.ts.
      await downstreams.close()
      await service.upstream.close()
      await coherence?.close()
      membership?.close()
      cache.close()
    },
  }
}

export type Member = Awaited<ReturnType<typeof startMember>>
