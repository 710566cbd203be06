import type { ChangeFeeds } from '../changes/change-feeds.ts'
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
  /** `documents`: how OpenAPI documents of services have changed; absent when none has. */
  | { readonly kind: 'applied'; readonly hash: string; readonly documents?: readonly object[] }
  | { readonly kind: 'unchanged'; readonly hash: string }
  /** One line for each fault: position, key and reason. */
  | { readonly kind: 'invalid'; readonly faults: readonly string[] }
  | { readonly kind: 'restart-needed'; readonly keys: readonly string[] }
  | { readonly kind: 'failed'; readonly cause: unknown }

/** Result of a purge: the number of stored responses concerned, or why none was searched. */
export type PurgeOutcome =
  /** `warming`: targets that are fetched again in the background. */
  | { readonly kind: 'purged'; readonly entries: number; readonly warming: number }
  | { readonly kind: 'refused'; readonly detail: string }
  /** Dropped here; other instances could not be notified. */
  | { readonly kind: 'unheard' }

/** Result of a request to warm the cache: how many URLs are fetched in the background, and why others are not. */
export type WarmAnswer = {
  readonly warming: number
  readonly refused: readonly { readonly url: string; readonly detail: string }[]
}

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
  /** Fetches public URLs or paths in the background with anonymous GETs. */
  warm(urls: readonly string[]): WarmAnswer | Promise<WarmAnswer>
  /** Has its own credential: the token of a service. */
  readonly changes: Pick<ChangeFeeds, 'admit' | 'receive'>
  entries(query: EntriesQuery): readonly unknown[] | Promise<readonly unknown[]>
  explain(request: AskedRequest): unknown
  drift(): unknown
  config(): unknown
  /**
   * The OpenAPI document of all services, or the one of a service that has its own; ready to be sent. Undefined: there is no such
   * service.
   */
  openApi(service?: string): Buffer | undefined
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

/** Why the admin side refuses a request. */
export type AccessRefusal =
  | 'credential-missing'
  | 'credential-wrong'
  | 'cross-site'
  | 'host-by-name'
  | 'not-json'
  | 'not-loopback'

/** Events of the admin side, for the log: every write and every refusal. Addresses are those of peers. */
export type AdminEvent =
  | {
      readonly kind: 'admin-purge'
      readonly address: string
      /** `several`: selectors of more than one kind. */
      readonly selector: 'url' | 'tag' | 'prefix' | 'all' | 'several'
      readonly selectors: number
      readonly mode: 'soft' | 'hard'
      readonly dryRun: boolean
      /** Stored responses concerned. */
      readonly entries: number
      /** Targets that are fetched again. */
      readonly warming: number
    }
  | { readonly kind: 'admin-warm'; readonly address: string; readonly warming: number }
  | {
      readonly kind: 'admin-log-level'
      readonly address: string
      readonly to: string
      readonly forMs: number | undefined
    }
  | { readonly kind: 'admin-drain'; readonly address: string }
  | { readonly kind: 'admin-reload'; readonly address: string }
  | { readonly kind: 'admin-refused'; readonly address: string; readonly reason: AccessRefusal }
