import type { PurgeRequest } from './purge-request.ts'

/** May requests be sent here: `reasons` say why not, `degraded` what a client may notice although they may. */
export type Readiness = {
  readonly ready: boolean
  readonly reasons: readonly string[]
  readonly degraded: readonly { readonly reason: string; readonly service?: string }[]
}

/** What came of a reload. In all cases but `applied` everything is as it was. */
export type ReloadOutcome =
  | { readonly kind: 'applied'; readonly hash: string }
  | { readonly kind: 'unchanged'; readonly hash: string }
  /** One line for each fault: place, key and what is wrong. */
  | { readonly kind: 'invalid'; readonly faults: readonly string[] }
  | { readonly kind: 'restart-needed'; readonly keys: readonly string[] }
  | { readonly kind: 'failed'; readonly cause: unknown }

/** What came of a purge: how many stored responses it concerned, or why nothing was looked for. */
export type PurgeOutcome =
  | { readonly kind: 'purged'; readonly entries: number }
  | { readonly kind: 'refused'; readonly detail: string }
  /** Dropped here; other instances cannot be told, and shall not be thought to know. */
  | { readonly kind: 'unheard' }

export type EntriesQuery = { readonly sort: 'size' | 'hits' | 'age'; readonly limit: number }

/** A request that an operator asks about. */
type AskedRequest = {
  readonly method: string
  readonly url: string
  /** Lower-case names. */
  readonly fields: Readonly<Record<string, string>>
}

/** What came of a reload; `details`: what is wrong, one line each, or the keys that need a restart. */
export type ReloadAnswer =
  | { readonly kind: 'done'; readonly outcome: 'applied' | 'unchanged'; readonly hash: string }
  | {
      readonly kind: 'refused'
      readonly outcome: 'invalid' | 'restart-needed' | 'failed'
      readonly details: readonly string[]
    }

/** What the admin side shows and does; joined in assembly/. Views are plain data for JSON. */
export type Operator = {
  purge(request: PurgeRequest): PurgeOutcome | Promise<PurgeOutcome>
  entries(query: EntriesQuery): readonly unknown[] | Promise<readonly unknown[]>
  explain(request: AskedRequest): unknown
  drift(): unknown
  config(): unknown
  /** The OpenAPI document, ready to be sent. */
  openApi(): Buffer
  /** Puts the configuration in force that its file holds now. */
  reload(): Promise<ReloadAnswer>
  /** Ends the program as SIGTERM does: readiness off, what is in flight finished. Returns at once. */
  drain(): void
}
