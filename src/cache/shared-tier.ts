import type { StoredResponse } from './store/stored-response.ts'

/** The position up to which a process has applied invalidations; opaque here. */
export type LedgerPosition = { readonly epoch: string; readonly applied: number }

/** A stored response for the shared tier; nothing in it refers to this process. */
export type TierRecord = {
  readonly key: string
  readonly tags: readonly string[]
  readonly varyNames: readonly string[]
  readonly varyKey: string
  /** Its age when it is stored in the tier. */
  readonly ageMs: number
  readonly lifetimeMs: number
  /** The rest of the response, as plain data. */
  readonly facts: TierFacts
  readonly content: Buffer
}

/** Without Content-Length, which follows from the content. */
export type TierFacts = Pick<StoredResponse, 'status' | 'fields'> & {
  /** The gateway made the entity tag, so the upstream cannot compare it. */
  readonly ownTag: boolean
}

/** An entry of the tier. Another program than this gateway may have written it. */
export type TierEntry = Pick<TierRecord, 'tags' | 'varyKey' | 'ageMs' | 'content'> & {
  readonly facts: unknown
}

/**
 * Why an entry is refused. `malformed`: not in the format of a gateway; `fields`: fields that are never stored; `variant`: for other
 * request fields; `not-storable`: the same response of the upstream would not be stored; `stale`: too old.
 */
export type TierRefusal = 'malformed' | 'fields' | 'variant' | 'size' | 'not-storable' | 'stale'

export type TierQuery<Taken> = {
  readonly key: string
  readonly secondary: (names: readonly string[]) => string
  /** Turns an entry into what `load` returns, or refuses it. */
  readonly take: (entry: TierEntry) => Taken | TierRefusal
}

/** `mine`: this process sends the request to the upstream. `theirs`: another process does, and this one may wait for the result. */
export type Claim<Taken> =
  | { readonly kind: 'mine'; release(): void }
  | { readonly kind: 'theirs'; wait(): Promise<Taken | undefined> }

export type Tagged = { readonly tags: readonly string[] }

/** Stored responses that several processes share. No method rejects; after a failure the result is absent. */
export type SharedTier = {
  readonly position: LedgerPosition
  /** An entry that `take` accepted and whose tags were not invalidated; undefined while this process cannot receive invalidations. */
  load<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Taken | undefined>
  /** `since`: the position before the response was requested. */
  store(record: TierRecord, since: LedgerPosition): void
  claim<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Claim<Taken>>
}
