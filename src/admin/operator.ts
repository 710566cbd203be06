import type { PurgeRequest } from './purge-request.ts'

/** Whether to send requests here; `reasons`: why not; `degraded`: conditions that clients may notice; `findings`: of the start check. */
export type Readiness = {
  readonly ready: boolean
  readonly reasons: readonly string[]
  readonly degraded: readonly { readonly reason: string; readonly service?: string }[]
  readonly findings: readonly {
    readonly finding: string
    readonly service?: string
    readonly setting?: string
  }[]
}

/** Result of a reload. Only `applied` changes anything. */
export type ReloadOutcome =
  | { readonly kind: 'applied'; readonly hash: string }
  | { readonly kind: 'unchanged'; readonly hash: string }
  /** One line for each fault: position, key and reason. */
  | { readonly kind: 'invalid'; readonly faults: readonly string[] }
  | { readonly kind: 'restart-needed'; readonly keys: readonly string[] }
  | { readonly kind: 'failed'; readonly cause: unknown }

/** Result of a purge: the number of stored responses concerned, or why none was searched. */
export type PurgeOutcome =
  | { readonly kind: 'purged'; readonly entries: number }
  | { readonly kind: 'refused'; readonly detail: string }
  /** Dropped here; other instances could not be notified. */
  | { readonly kind: 'unheard' }

export type EntriesQuery = { readonly sort: 'size' | 'hits' | 'age'; readonly limit: number }

/** The request of an explanation. */
type AskedRequest = {
  readonly method: string
  readonly url: string
  /** Lower-case names. */
  readonly fields: Readonly<Record<string, string>>
}

/** Result of a reload; `details`: one line for each fault, or the keys that need a restart. */
export type ReloadAnswer =
  | { readonly kind: 'done'; readonly outcome: 'applied' | 'unchanged'; readonly hash: string }
  | {
      readonly kind: 'refused'
      readonly outcome: 'invalid' | 'restart-needed' | 'failed'
      readonly details: readonly string[]
    }

/** A warning of the configuration or a finding of the start check: what it is about, and the text. */
export type Notice = { readonly subject: string; readonly text: string }

/** A level of the log; `forMs`: how long, or until the end of the process. */
export type LogLevelRequest = { readonly level: string; readonly forMs: number | undefined }

/** What the admin side shows and does; build/ implements it. Views are plain data for JSON. */
export type Operator = {
  purge(request: PurgeRequest): PurgeOutcome | Promise<PurgeOutcome>
  entries(query: EntriesQuery): readonly unknown[] | Promise<readonly unknown[]>
  explain(request: AskedRequest): unknown
  drift(): unknown
  config(): unknown
  /** The OpenAPI document, ready to be sent. */
  openApi(): Buffer
  /** An hour of numbers, of one service or, with '', of all together. */
  history(service: string): Promise<unknown>
  /** The last errors, refusals and invalidations. */
  recent(): Promise<unknown>
  logLevel(): unknown
  /** In all processes; returns the state afterwards. */
  setLogLevel(change: LogLevelRequest): Promise<unknown>
  /** Reads the configuration file and applies it. */
  reload(): Promise<ReloadAnswer>
  /** Ends the program as SIGTERM does: unready, then requests in flight finish. Returns at once. */
  drain(): void
}
