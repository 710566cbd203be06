import type { Readable } from 'node:stream'
import { Cache } from '../../src/cache/cache.ts'
import type { Purge } from '../../src/cache/invalidation.ts'
import type { Clock } from '../../src/clock.ts'
import type { WorkerLink } from '../../src/cluster/worker-link.ts'
import { ConfigSnapshot } from '../../src/exchange/config-snapshot.ts'
import { type HandleDeps, handle } from '../../src/exchange/handle.ts'
import { arrived } from '../../src/exchange/request-context.ts'
import { createWritesInFlight } from '../../src/exchange/writes-in-flight.ts'
import { operatorCache } from '../../src/gateway/admin/operator-cache.ts'
import { Broadcast } from '../../src/gateway/parts/broadcast.ts'
import { connectDownstreams } from '../../src/gateway/parts/downstreams.ts'
import { prepareMembership } from '../../src/gateway/parts/membership.ts'
import { unlimited } from '../../src/http/bounds/byte-budget.ts'
import { EndSignal } from '../../src/http/end-signal.ts'
import type { GatewayRequest, GatewayResponse } from '../../src/http/message.ts'
import { Redaction } from '../../src/http/redaction.ts'
import { targetParts } from '../../src/http/targets.ts'
import type { Metrics } from '../../src/observability/metrics.ts'
import { servicesOf } from './member-services.ts'
import { configOf, type MemberSettings, maxEntryBytes } from './member-settings.ts'
import type { SimulatedRequest } from './services/interface.ts'
import { currentProcess, type Process, world } from './world.ts'

const clockOf = (process: Process): Clock => ({
  now: () => world.wallOf(process),
  monotonic: () => world.monotonicOf(process),
})

const ignore = (): void => undefined

const metrics = {
  observe: { sharedTier: ignore, coherence: ignore, downstream: ignore },
} as unknown as Metrics

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
    redaction: new Redaction(),
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
    batchOf: (name: string) => all.find(({ service }) => service.name === name)?.batch?.handle,
  } as Partial<HandleDeps> as HandleDeps
  const parts = { settings, clock, downstreams }
  let all = servicesOf(parts)
  const use = (): ConfigSnapshot => {
    const services = all.map(({ service }) => service)
    downstreams.use(services)
    return new ConfigSnapshot(services)
  }
  let snapshot = use()
  const respond = async (
    { method, target, headers }: SimulatedRequest,
    content: GatewayRequest['content'],
    signal: AbortSignal,
  ): Promise<GatewayResponse> => {
    const service = snapshot.serviceAt('', target)
    if (service === undefined) throw new Error(`no service has ${target}`)
    const { path, query } = targetParts(target.slice(service.mount.length))
    const request = { method, target, headers, content, signal }
    return handle(
      context,
      arrived({ id: 'id', origin: 'client', client, snapshot, service, request, path, query }),
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
    /** `content`: in place of that of the request, where it streams. */
    respond: (
      request: SimulatedRequest,
      signal: EndSignal = new EndSignal(),
      content: Readable | undefined = undefined,
    ): Promise<GatewayResponse> =>
      respond(request, content ?? request.content, signal as unknown as AbortSignal),
    purge: (selector: Purge['selector']): Promise<number | 'unacknowledged'> =>
      operator.purge({ selectors: [selector], mode: 'hard', dryRun: false }),
    /** The next configuration has new services in the place of the old ones, with the same rules. */
    reload: (): void => {
      for (const { service } of all) void service.upstream.close()
      all = servicesOf(parts, all)
      const next = use()
      snapshot.replaceBy(next)
      snapshot = next
    },
    close: async (): Promise<void> => {
      // In the order of src/gateway/running-gateway.ts.
      await downstreams.close()
      await Promise.all(all.map(({ service }) => service.upstream.close()))
      await coherence?.close()
      membership?.close()
      cache.close()
    },
  }
}

export type Member = Awaited<ReturnType<typeof startMember>>
