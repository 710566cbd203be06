import { Cache } from '../../../src/cache/cache.ts'
import { cacheKey } from '../../../src/cache/cache-key.ts'
import type { CacheRead, CacheResponse, Forward } from '../../../src/cache/cache-read.ts'
import type { CachePolicy, CacheRule } from '../../../src/cache/decide-caching.ts'
import type { CacheEvent } from '../../../src/cache/events.ts'
import type { CompressionOptions } from '../../../src/cache/respond/encodings.ts'
import type { AdmissionMode } from '../../../src/cache/store/admission.ts'
import type { Clock } from '../../../src/clock.ts'
import { unlimited } from '../../../src/http/bounds/byte-budget.ts'
import { headerValue, requestHeader } from '../../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../../src/http/message.ts'
import { Redaction } from '../../../src/http/redaction.ts'

/** A clock that only the test moves. */
export type ManualClock = Clock & { advance(milliseconds: number): void; setWall(milliseconds: number): void }

export const startOfTest = Date.UTC(2026, 0, 1)

const manualClock = (): ManualClock => {
  let wall = startOfTest
  let monotonic = 1000
  return {
    now: () => wall,
    monotonic: () => monotonic,
    advance: (milliseconds) => {
      wall += milliseconds
      monotonic += milliseconds
    },
    setWall: (milliseconds) => {
      wall = milliseconds
    },
  }
}

const rule = (changes: Partial<CacheRule> = {}): CacheRule => ({
  ttlMs: 60_000,
  staleWhileRevalidateMs: 0,
  staleIfErrorMs: 0,
  override: false,
  negativeTtlMs: 0,
  scope: 'public',
  ...changes,
})

export const safePolicy = (changes: Partial<CacheRule> = {}): CachePolicy => ({
  profile: 'safe',
  rule: rule(changes),
})

export const rfcPolicy: CachePolicy = { profile: 'rfc-shared-cache', rule: undefined }

/** A response as an upstream gives it; headers as a flat list. */
export const response = (text: string, headers: readonly string[] = [], status = 200): GatewayResponse => ({
  status,
  headers,
  content: Buffer.from(text),
})

export type ReadOptions = Partial<Omit<CacheRead, 'tags'>> & {
  readonly target?: string
  readonly tags?: readonly string[] | CacheRead['tags']
}

export const readOf = (options: ReadOptions = {}): CacheRead => {
  const { target = '/a', tags = [], headers = {}, ...given } = options
  return {
    service: 'site',
    route: '/a',
    key: cacheKey({ service: 'site', target, partition: given.partition ?? 'public' }),
    partition: 'public',
    method: 'GET',
    headers,
    sentHeader: (name) => requestHeader(headers, name),
    policy: safePolicy(),
    tags: typeof tags === 'function' ? tags : () => tags,
    signal: new AbortController().signal,
    ...given,
  }
}

/** One upstream request, which the test answers. */
export type PendingForward = {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  response(response: GatewayResponse): void
  fail(error: unknown): void
}

/** An upstream whose every answer the test gives itself. */
export const scriptedForward = (): { readonly forward: Forward; readonly calls: PendingForward[] } => {
  const calls: PendingForward[] = []
  const forward: Forward = ({ headers, signal }) =>
    new Promise((response, fail) => {
      signal.addEventListener('abort', () => fail(signal.reason), { once: true })
      calls.push({ headers, signal, response, fail })
    })
  return { forward, calls }
}

export type Harness = {
  readonly cache: Cache
  readonly clock: ManualClock
  readonly events: CacheEvent[]
}

export const harness = (
  limits: {
    maxBytes?: number
    maxHeapBytes?: number
    maxEntryBytes?: number
    compression?: CompressionOptions
    admission?: AdmissionMode
  } = {},
): Harness => {
  const clock = manualClock()
  const events: CacheEvent[] = []
  const cache = new Cache({
    maxBytes: limits.maxBytes ?? 1_000_000,
    maxHeapBytes: limits.maxHeapBytes ?? Number.POSITIVE_INFINITY,
    maxEntryBytes: limits.maxEntryBytes ?? 100_000,
    budget: () => unlimited,
    admission: limits.admission ?? 'always',
    compression: limits.compression ?? { codings: [], minBytes: 1024 },
    clock,
    redaction: new Redaction(),
    report: (event) => events.push(event),
  })
  return { cache, clock, events }
}

export const textOf = async (response: GatewayResponse): Promise<string> => {
  if (response.content === undefined) return ''
  if (Buffer.isBuffer(response.content)) return response.content.toString()
  const chunks: Buffer[] = []
  for await (const chunk of response.content) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

export const cacheStatusOf = (response: CacheResponse): string | undefined =>
  headerValue(response.headers, 'cache-status')

/** Lets everything that can run without new input run. */
export const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i += 1) await new Promise((done) => setImmediate(done))
}
