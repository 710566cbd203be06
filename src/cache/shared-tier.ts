import type { StoredResponse } from './store/stored-response.ts'

/** Up to where a process has heard of invalidations: opaque here. */
type LedgerPosition = { readonly epoch: string; readonly applied: number }

/** A stored response as it goes to the shared tier: nothing in it refers to this process. */
export type TierRecord = {
  readonly key: string
  readonly tags: readonly string[]
  readonly varyNames: readonly string[]
  readonly varyKey: string
  /** When it is given to the tier. */
  readonly ageMs: number
  readonly lifetimeMs: number
  /** The rest of the response, as plain data. */
  readonly facts: TierFacts
  readonly content: Buffer
}

/** Without Content-Length, which follows from the content. */
export type TierFacts = Pick<StoredResponse, 'status' | 'fields'> & {
  /** The gateway made the entity tag: it is of no use to the upstream. */
  readonly ownTag: boolean
}

/** What the tier has under a key. It may have been written by something else than this gateway. */
export type TierEntry = Pick<TierRecord, 'tags' | 'varyKey' | 'ageMs' | 'content'> & {
  readonly facts: unknown
}

/**
 * Why an entry is refused. `malformed`: not in the form that a gateway writes; `fields`: some that are never stored; `variant`:
 * selected by other request fields; `not-storable`: the same response of the upstream would not be stored; `stale`: older than it
 * may be here.
 */
export type TierRefusal = 'malformed' | 'fields' | 'variant' | 'size' | 'not-storable' | 'stale'

export type TierQuery<Taken> = {
  readonly key: string
  readonly secondary: (names: readonly string[]) => string
  /** Turns an entry into what `load` returns, or refuses it. */
  readonly take: (entry: TierEntry) => Taken | TierRefusal
}

/** `mine`: this process sends the request to the upstream. `theirs`: another process does, and this one may wait for its response. */
export type Claim<Taken> =
  | { readonly kind: 'mine'; release(): void }
  | { readonly kind: 'theirs'; wait(): Promise<Taken | undefined> }

export type Tagged = { readonly tags: readonly string[] }

/** Where several processes share stored responses. No method rejects: after a failure the result is absent. */
export type SharedTier = {
  readonly position: LedgerPosition
  /** An entry that `take` accepted and whose tags have not been invalidated; undefined while this process cannot hear of invalidations. */
  load<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Taken | undefined>
  /** `since`: the position before the response was requested. */
  store(record: TierRecord, since: LedgerPosition): void
  claim<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Claim<Taken>>
}
