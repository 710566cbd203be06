/**
 * The state of a target from both its checks and its requests. `failing` ones get requests all the same, because too many
 * others are out (`eject.maxShare`). `unknown`: no request and no check has ended yet.
 */
export type TargetState = 'unknown' | 'healthy' | 'failing' | 'left-out'

/** How one attempt at one target ended. `discarded` is a response that was dropped in favour of a retry. */
export type AttemptOutcome = 'answered' | 'unreachable' | 'timeout' | 'broken' | 'discarded' | 'aborted'

/** `2xx` and so on for an attempt that got a head, `none` for one that did not. */
export type StatusClass = '2xx' | '3xx' | '4xx' | '5xx' | 'none'

/** Why a failed attempt was followed by another one. */
export const retryReasons = [
  'connect-failed',
  'connection-lost',
  'timed-out',
  'status',
  'status-retry-after',
] as const
export type RetryReason = (typeof retryReasons)[number]

/** Why a failed attempt was the last one. */
export const giveUpReasons = [
  'attempts-used',
  'method',
  'content-consumed',
  'no-other-target',
  'retry-after-too-long',
  'deadline',
  'budget',
] as const
export type GiveUpReason = (typeof giveUpReasons)[number]

/**
 * How the wait for a slot ended. `client-share`: its client has used up its share of the slots or of the queue;
 * `arriving-share`: the share of requests whose bodies are still arriving is used up.
 */
export const queueOutcomes = ['sent', 'full', 'client-share', 'arriving-share', 'timeout', 'aborted'] as const
export type QueueOutcome = (typeof queueOutcomes)[number]

/** The reason why a request in flight waits for its client: the rest of its body, or the reading of the response. */
export const clientWaits = ['request-body', 'reader'] as const
export type ClientWait = (typeof clientWaits)[number]

/** How an active check ended; all but `good` are failures. */
export const checkResults = ['good', 'status', 'timeout', 'connect', 'tls', 'broken'] as const
export type CheckResult = (typeof checkResults)[number]

export type AttemptEvent = {
  readonly kind: 'attempt-finished'
  readonly service: string
  readonly target: string
  readonly outcome: AttemptOutcome
  readonly statusClass: StatusClass
  /** From handing the request to the connection pool to the response head; undefined without one. */
  readonly headSeconds: number | undefined
  readonly durationSeconds: number
  /** 1 for the first. */
  readonly attempt: number
}

/** `service` and `target` come from the configuration, so they are safe as labels. */
export type UpstreamEvent =
  | AttemptEvent
  | {
      readonly kind: 'retried'
      readonly service: string
      readonly target: string
      readonly reason: RetryReason
    }
  | {
      readonly kind: 'gave-up'
      readonly service: string
      readonly target: string
      readonly reason: GiveUpReason
    }
  | {
      readonly kind: 'slot-wait-finished'
      readonly service: string
      readonly outcome: QueueOutcome
      readonly waitedSeconds: number
    }
  /** A request was ended, and its slot given to others, because its client was too slow. */
  | { readonly kind: 'slow-client-ended'; readonly service: string; readonly wait: ClientWait }
  | {
      readonly kind: 'breaker-changed'
      readonly service: string
      readonly from: 'closed' | 'open' | 'half-open'
      readonly to: 'closed' | 'open' | 'half-open'
      /** In words, made of numbers and settings. */
      readonly cause: string
    }
  | { readonly kind: 'breaker-refused'; readonly service: string }
  /** An error within the handling of a connection, such as a failed assertion of the HTTP client. It has ended that connection. */
  | {
      readonly kind: 'connection-fault'
      readonly service: string
      readonly target: string
      readonly cause: unknown
    }
  | {
      readonly kind: 'target-changed'
      readonly service: string
      readonly target: string
      readonly from: TargetState
      readonly to: Exclude<TargetState, 'unknown'>
      /** In words, made of numbers, settings and error codes. */
      readonly cause: string
    }
  | {
      readonly kind: 'check-finished'
      readonly service: string
      readonly target: string
      readonly result: CheckResult
    }
