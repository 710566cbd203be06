import type { Clock } from '../src/clock.ts'
import { startTraceGateway, type TraceGateway, type TraceResponse } from './trace-gateway.ts'
import { type TraceRequest, traceRequests } from './trace-requests.ts'

/** How one cache did on the trace. */
export type TraceResult = {
  readonly name: string
  readonly reads: number
  readonly hits: number
  /** Reads that the cache sent on, and in Trellis's case validations. */
  readonly upstreamReads: number
  /** Responses that differed from what the site would have said at that moment. */
  readonly stale: number
}

export type TraceRun = {
  readonly seed: number
  readonly operations: number
  /** Of the virtual clock, from one request to the next. */
  readonly betweenMs: number
}

const ttlMs = 60_000
const clients = 12
const writeShare = 0.01

/** What others do: whole URLs as keys, one lifetime for all. */
type Yardstick = {
  readonly name: string
  readonly purgesOnWrite: boolean
  readonly stored: Map<string, { readonly response: TraceResponse; readonly until: number }>
  hits: number
  upstreamReads: number
  stale: number
}

const yardstick = (name: string, purgesOnWrite: boolean): Yardstick => ({
  name,
  purgesOnWrite,
  stored: new Map(),
  hits: 0,
  upstreamReads: 0,
  stale: 0,
})

const isSame = (a: TraceResponse, b: TraceResponse): boolean =>
  a.status === b.status && a.text === b.text && a.total === b.total

const readYardstick = (cache: Yardstick, target: string, truth: TraceResponse, now: number): void => {
  const known = cache.stored.get(target)
  if (known !== undefined && known.until > now) {
    cache.hits += 1
    if (!isSame(known.response, truth)) cache.stale += 1
    return
  }
  cache.upstreamReads += 1
  cache.stored.set(target, { response: truth, until: now + ttlMs })
}

const idsOf = async (gateway: TraceGateway, target: string): Promise<readonly number[]> =>
  (JSON.parse((await gateway.direct(target)).text) as { id: number }[]).map(({ id }) => id)

type Tally = { reads: number; hits: number; stale: number; writes: number }

type Race = {
  readonly gateway: TraceGateway
  readonly trellis: Tally
  readonly others: readonly Yardstick[]
  /** What the site says of a target, until the next write. */
  readonly truths: Map<string, TraceResponse>
}

type Write = Extract<TraceRequest, { kind: 'write' }>

const write = async ({ gateway, trellis, others, truths }: Race, request: Write): Promise<void> => {
  const { status, text } = await gateway.ask(request.method, request.target, request.content)
  if (status >= 300) throw new Error(`${request.method} ${request.target}: ${status} ${text}`)
  trellis.writes += 1
  truths.clear()
  for (const other of others) if (other.purgesOnWrite) other.stored.clear()
}

const read = async (
  { gateway, trellis, others, truths }: Race,
  target: string,
  now: number,
): Promise<void> => {
  const truth = truths.get(target) ?? (await gateway.direct(target))
  if (truth.status !== 200) throw new Error(`${target}: ${truth.status} ${truth.text}`)
  truths.set(target, truth)
  const response = await gateway.ask('GET', target)
  trellis.reads += 1
  if (response.hit) trellis.hits += 1
  if (!isSame(response, truth)) trellis.stale += 1
  for (const other of others) readYardstick(other, target, truth, now)
}

const resultsOf = ({ gateway, trellis, others }: Race): readonly TraceResult[] => {
  const { reads, hits, stale, writes } = trellis
  return [
    { name: 'Trellis', reads, hits, stale, upstreamReads: gateway.upstreamRequests - writes },
    ...others.map(({ name, hits: hit, upstreamReads, stale: old }) => ({
      name,
      reads,
      hits: hit,
      upstreamReads,
      stale: old,
    })),
  ]
}

/** One trace through all caches side by side; what the site says at each moment is asked beside them. */
export const runTrace = async ({
  seed,
  operations,
  betweenMs,
}: TraceRun): Promise<readonly TraceResult[]> => {
  const began = Date.now()
  let elapsed = 0
  const clock: Clock = { now: () => began + elapsed, monotonic: () => 1000 + elapsed }
  const gateway = await startTraceGateway(clock)
  const race: Race = {
    gateway,
    trellis: { reads: 0, hits: 0, stale: 0, writes: 0 },
    others: [yardstick('TTL only, raw URL', false), yardstick('purge all on write, raw URL', true)],
    truths: new Map(),
  }
  try {
    const posts = await idsOf(gateway, '/site/v2/posts?per_page=100&_fields=id')
    const pages = await idsOf(gateway, '/site/v2/pages?per_page=100&_fields=id')
    for (const request of traceRequests({ seed, operations, writeShare, clients, posts, pages })) {
      elapsed += betweenMs
      if (request.kind === 'write') await write(race, request)
      else await read(race, request.target, elapsed)
    }
    return resultsOf(race)
  } finally {
    await gateway.close()
  }
}
