import { fieldValues, knownMethods, type ResponseHead } from '../http/message.ts'
import { traceContextOf } from '../http/trace-context.ts'
import type { Received } from '../pipeline/exchange.ts'
import type { Answered, ExchangeWatch } from '../pipeline/phase-options.ts'

/** What an access line says. No target, no field and no content of a client's: the row's template stands for the path. */
export type AccessLine = {
  readonly id: string
  readonly trace: string | undefined
  readonly service: string
  readonly route: string
  readonly method: string
  readonly status: number
  readonly cache: string
  /** What the gateway's own member of Cache-Status says (RFC 9211): how, and why. */
  readonly cacheStatus: string | undefined
  readonly durationMs: number
  readonly upstreamMs: number
  /** Of content; absent where it streams without a length. */
  readonly bytes: number | undefined
  /** Requests that this line stands for, where hits are sampled. */
  readonly weight: number | undefined
}

/** `all`: a line for each request; `sample`: one for some hits, and one for each of the others. */
export type AccessLogOptions = {
  readonly mode: 'all' | 'sample'
  /** Share of hits that get a line, above 0. */
  readonly sampleHits: number
  write(line: AccessLine): void
}

const ownMember = 'trellis; '

/** The gateway's member comes last, after the Cache-Status of the upstream, whose text is not logged. */
const ownCacheStatus = ({ fields }: ResponseHead): string | undefined => {
  const last = fieldValues(fields, 'cache-status').at(-1)
  return last?.startsWith(ownMember) === true ? last.slice(ownMember.length) : undefined
}

const bytesOf = ({ head, content }: Answered): number | undefined => {
  if (Buffer.isBuffer(content)) return content.length
  const [declared] = fieldValues(head.fields, 'content-length')
  if (declared !== undefined && /^\d{1,15}$/.test(declared)) return Number(declared)
  return content === undefined ? 0 : undefined
}

const microseconds = (milliseconds: number): number => Math.round(milliseconds * 1000) / 1000

const lineOf = (
  { id, service, request, record }: Received,
  answered: Answered,
  weight: number | undefined,
): AccessLine => ({
  id,
  trace: record.trace?.traceId ?? traceContextOf(request.fields)?.traceId,
  service: service.name,
  route: record.route,
  method: knownMethods.has(request.method) ? request.method : '_OTHER',
  status: answered.head.status,
  cache: record.cache,
  cacheStatus: record.cache === 'none' ? undefined : ownCacheStatus(answered.head),
  durationMs: microseconds(answered.durationMs),
  upstreamMs: microseconds(record.upstreamMs),
  bytes: bytesOf(answered),
  weight,
})

/** One line for a request, written when its answer is ready. Items of a batch have none: the batch has. */
export const createAccessLog = (options: AccessLogOptions): ExchangeWatch => {
  const every = Math.max(1, Math.round(1 / options.sampleHits))
  let hits = 0
  /** Undefined: no line. Counted, not drawn: a hundred hits give one line at a share of a hundredth, never none and never three. */
  const weightOf = (cache: string): number | undefined => {
    if (options.mode === 'all' || cache !== 'hit') return 1
    hits += 1
    if (hits < every) return undefined
    hits = 0
    return every
  }
  return {
    begin: () => {},
    end: (exchange, answered) => {
      if (exchange.origin !== 'client') return
      const weight = weightOf(exchange.record.cache)
      if (weight === undefined) return
      options.write(lineOf(exchange, answered, options.mode === 'all' ? undefined : weight))
    },
  }
}
