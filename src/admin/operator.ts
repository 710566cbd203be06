import type { ChangeFeeds } from '../wordpress/changes/change-feeds.ts'
import type { PurgeRequest, WarmRequest } from './purge-request.ts'

/** Result of a reload. Only `applied` changes anything. */
export type ReloadOutcome =
  /** `changed`: keys of the configuration. `documents`: how OpenAPI documents of services have changed; absent when none has. */
  | {
      readonly kind: 'applied'
      readonly hash: string
      readonly changed: readonly string[]
      readonly documents?: readonly object[]
    }
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
  | { readonly kind: 'unacknowledged' }

/** Result of a request to warm the cache: how many URLs are fetched in the background, and why others are not. */
export type WarmResponse = {
  readonly warming: number
  readonly refused: readonly { readonly url: string; readonly detail: string }[]
  /** Where the request waited for the fetches: how many URLs are stored now, and why others are not. */
  readonly stored?: number
  readonly notStored?: readonly {
    readonly url: string
    /** `bypassed`: no rule stores it. `unfinished`: it takes longer than the request waited. */
    readonly outcome: 'bypassed' | 'dropped' | 'failed' | 'unfinished'
    readonly detail: string
  }[]
}

/** What has changed since a build of a site generator. */
export type BuildChanges = {
  /** How many URLs the build has read. */
  readonly reads: number
  /** URLs whose responses are others now, or may be. */
  readonly changed: readonly string[]
  /** Something changed between two reads of the build: some of its pages may show the state before, and others the state after. */
  readonly torn: boolean
  /** Its reads are not known any more: everything may have changed. */
  readonly everything: boolean
}

/** `changes`: since the build that it follows; undefined where it follows none. */
type BegunBuild = { readonly build: string; readonly changes: BuildChanges | undefined }

export type EntriesQuery = { readonly sort: 'size' | 'hits' | 'age'; readonly limit: number }

type ExplainedRequest = {
  readonly method: string
  readonly url: string
  /** Lower-case names. */
  readonly fields: Readonly<Record<string, string>>
}

/** A warning of the configuration or an issue of the start check: what it is about, and the text. */
export type Notice = { readonly subject: string; readonly text: string }

/** A level of the log; `forMs`: how long, or until the end of the process. */
export type LogLevelRequest = { readonly level: string; readonly forMs: number | undefined }

/** What the admin side shows and does; the folder gateway implements it. Views are plain data for JSON. */
export type Operator = {
  purge(request: PurgeRequest): PurgeOutcome | Promise<PurgeOutcome>
  /** Fetches public URLs or paths with anonymous GETs, in the background or until they are there. */
  warm(request: WarmRequest): WarmResponse | Promise<WarmResponse>
  /** Undefined: the build that is named is not known. */
  readonly builds: {
    begin(since: string | undefined): Promise<BegunBuild | undefined>
    changes(build: string): Promise<BuildChanges | undefined>
  }
  /** Has its own credential: the token of a service. */
  readonly changes: Pick<ChangeFeeds, 'admit' | 'receive'>
  entries(query: EntriesQuery): readonly unknown[] | Promise<readonly unknown[]>
  explain(request: ExplainedRequest): unknown
  drift(): unknown
  config(): unknown
  /** Of all services, or of one that has its own document; ready to be sent. Undefined: there is no such service. */
  openApi(service?: string): Buffer | undefined
  /** An hour of numbers, of one service or, with '', of all together. */
  history(service: string): Promise<unknown>
  recent(): Promise<unknown>
  logLevel(): unknown
  /** In all processes; returns the state afterwards. */
  setLogLevel(change: LogLevelRequest): Promise<unknown>
  reload(): Promise<ReloadOutcome>
  /** Ends the program as SIGTERM does: unready, then requests in flight finish. Returns at once. */
  drain(): void
}
