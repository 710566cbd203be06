import type { BypassReason } from '../cache/decide-caching.ts'
import type { WriteDetail } from '../cache/events.ts'
import type { UndeclaredParameters } from '../service/contract.ts'
import type { AccessRefusal } from './access.ts'

/**
 * How far a write got. `partly-sent`: an octet of its body left for the upstream. `open`: its response has begun. `ended`: its whole
 * response was read. `broken-off`: it was sent, and its whole response was not read.
 */
export const writeStates = ['not-sent', 'partly-sent', 'sent', 'open', 'ended', 'broken-off'] as const

export type WriteState = (typeof writeStates)[number]

/**
 * The steps of a write (write.ts), as docs/request-path.md describes them: the same names in code, traces and `explain`. `piece` and, of a
 * response that streams, `end` follow `respond`.
 */
export const writeSteps = [
  'judge',
  'pass',
  'register',
  'forward',
  'read',
  'verdict',
  'open',
  'end',
  'respond',
  'piece',
  'break-off',
] as const
export type WriteStep = (typeof writeSteps)[number]

/** The ways that most writes go, for `explain`. */
export const usualWriteSteps: Readonly<Record<'whole' | 'streamed', readonly WriteStep[]>> = {
  whole: ['judge', 'register', 'forward', 'read', 'verdict', 'end', 'respond'],
  streamed: ['judge', 'register', 'forward', 'verdict', 'open', 'respond', 'piece', 'end'],
}

/** How far a write got, for its client; undefined: its response says it. */
export type WriteOutcome = 'not-sent' | 'unknown' | undefined

/** `batch` for an item of a batch, `verify` for a stored response that is fetched again to be compared, `client` for all others. */
export type ExchangeOrigin = 'client' | 'batch' | 'verify'

/** Reported once for every exchange. All strings come from configuration or closed lists, never from a client. */
export type ExchangeFinishedEvent = {
  readonly kind: 'exchange-finished'
  /** Request id, for lists of recent requests; never a label. */
  readonly id?: string
  /** Of a write: the tags that it invalidated, and the number of stored responses dropped. For lists of recent requests, never a label. */
  readonly invalidated?: Invalidated | undefined
  /** Absent for requests that cannot write. */
  readonly writeKind?: WriteKind | undefined
  readonly service: string
  /** Row template, e.g. `/site/v2/posts/{id}`; `unlisted` or `unmatched` where no row applies. */
  readonly route: string
  /** One of the known methods, or `_OTHER` (OpenTelemetry HTTP conventions). */
  readonly method: string
  readonly status: number
  /** `hit`, `miss`, `stale`, `revalidated`, `collapsed`, `bypass`, or `none` where the cache was not used. */
  readonly cache: CacheOutcome
  readonly durationSeconds: number
  /** Part of the duration spent waiting for an upstream; 0 when none was used. */
  readonly upstreamSeconds: number
  /** Age of the stored response that was served; negative or absent when none was. */
  readonly ageSeconds?: number
  readonly origin: ExchangeOrigin
  /** The trace that it is part of, and when it ended; absent unless the trace is recorded. For exemplars, never a label. */
  readonly trace?: { readonly id: string; readonly epochMs: number } | undefined
}

/**
 * What a request that may write was taken for: `reported` and `nothing` by the companion, `table` by what the contract knows,
 * `harmless` by the configuration, `unclassified` all others (label `unknown`).
 */
export const writeKinds = [
  'reported',
  'nothing',
  'table',
  'harmless',
  'unclassified',
] as const satisfies readonly (WriteDetail | 'unclassified')[]
export type WriteKind = (typeof writeKinds)[number]

/** Did the write reach all responses of a service, because nothing is known of it? */
export const hasEmptiedCache = ({
  writeKind,
  invalidated,
}: Pick<ExchangeFinishedEvent, 'writeKind' | 'invalidated'>): boolean =>
  writeKind === 'unclassified' && invalidated?.reachesEverything === true

export type Invalidated = {
  readonly tags: readonly string[]
  readonly entries: number
  /** Do the tags reach all responses of a service? */
  readonly reachesEverything: boolean
  /** Some of the public URLs among the entries: paths, or whole URLs where the service has hosts. */
  readonly urls: readonly string[]
}

export const cacheOutcomes = ['hit', 'miss', 'stale', 'revalidated', 'collapsed', 'bypass', 'none'] as const
export type CacheOutcome = (typeof cacheOutcomes)[number]

/** A request that was refused or failed; reported once, where the error becomes a response. */
export type RefusalEvent = {
  readonly kind: 'request-refused'
  /** Request id, for the log line; never a label. */
  readonly id: string
  readonly service: string
  readonly route: string
  /** From the closed lists of the validators and of errors.ts. */
  readonly code: string
  readonly status: number
  /** Only those of clients have an access line. */
  readonly origin: ExchangeOrigin
}

/** The canonical form of a GET's target was computed, because it was in no memo, and differs from the target. */
export type CanonicalEvent = { readonly kind: 'target-canonicalised'; readonly service: string }

/** A valid request whose query has parameters that its row does not declare; not for a target that was seen before. */
export type UndeclaredEvent = {
  readonly kind: 'undeclared-parameters'
  readonly service: string
  readonly handling: UndeclaredParameters['handling']
  /** How many; their names are the client's. */
  readonly count: number
}

/** `access` of the service has refused a request; `request-refused` follows. */
export type AccessRefusedEvent = {
  readonly kind: 'access-refused'
  readonly service: string
  readonly reason: AccessRefusal
}

/** A target was fetched again after a purge, or because an operator asked for it. `dropped`: too many waited. */
export type WarmedEvent = {
  readonly kind: 'warmed'
  readonly service: string
  readonly outcome: 'fetched' | 'hit' | 'bypassed' | 'failed' | 'dropped'
}

/** A request that changes nothing is forwarded without a look at what is stored. */
export type BypassedEvent = {
  readonly kind: 'bypassed'
  readonly service: string
  readonly route: string
  readonly detail: BypassReason
}

export const verifiedOutcomes = ['same', 'differed', 'varies', 'overtaken', 'failed'] as const

export type VerifiedEvent = {
  readonly kind: 'verified'
  readonly service: string
  readonly outcome: (typeof verifiedOutcomes)[number]
}

/** A write has reached a state. */
export type WriteAdvancedEvent = {
  readonly kind: 'write-advanced'
  readonly service: string
  readonly state: WriteState
}

/** A write would have gone from one state to another that cannot follow: a fault of the gateway. */
export type WriteIllegalEvent = {
  readonly kind: 'write-illegal'
  readonly service: string
  readonly from: WriteState
  readonly to: WriteState
}

/** The response to a write streams (1), or no longer does (-1). */
export type WriteQuarantinedEvent = {
  readonly kind: 'write-quarantined'
  readonly service: string
  readonly by: 1 | -1
}

export type ExchangeEvent =
  | WriteQuarantinedEvent
  | WriteAdvancedEvent
  | WriteIllegalEvent
  | VerifiedEvent
  | WarmedEvent
  | ExchangeFinishedEvent
  | RefusalEvent
  | CanonicalEvent
  | UndeclaredEvent
  | AccessRefusedEvent
  | BypassedEvent
