import type { StoredResponse } from './stored-response.ts'
import { ownBytes, tagged } from './stored-response.ts'

/** Up to where its owner had heard of changes: opaque here. */
type Place = { readonly epoch: string; readonly applied: number }

/** A stored response as it goes to a second tier: nothing in it refers to this process. */
export type TierRecord = {
  readonly key: string
  readonly tags: readonly string[]
  readonly varyNames: readonly string[]
  readonly varyKey: string
  /** When it was given away, or now. */
  readonly ageMs: number
  readonly lifetimeMs: number
  /** What else there is, as plain data. */
  readonly facts: TierFacts
  readonly content: Buffer
}

type TierFacts = Pick<
  StoredResponse,
  'status' | 'fields' | 'staleWhileRevalidateMs' | 'staleIfErrorMs' | 'neverStale' | 'codable'
> & { readonly upstreamTag: string | null }

/** Whether this process asks the upstream, or waits for another one that does. */
export type Claim =
  | { readonly kind: 'mine'; release(): void }
  | { readonly kind: 'theirs'; awaited(): Promise<TierRecord | undefined> }

/** Where several processes keep responses together. Nothing here rejects: what fails is absent. */
export type SharedTier = {
  readonly place: Place
  /** A fresh one whose tags nobody has invalidated, as far as this process has heard; nothing when it cannot hear. */
  load(key: string, secondary: (names: readonly string[]) => string): Promise<TierRecord | undefined>
  /** `since`: the place before its forward began. */
  store(record: TierRecord, since: Place): void
  claim(key: string, secondary: (names: readonly string[]) => string): Promise<Claim>
}

/** Is it of use to others: complete, and fresh without being asked about each time? */
export const isForTier = (stored: StoredResponse): boolean =>
  stored.extent === undefined && !stored.validateAlways && stored.lifetimeMs > 0

/** What goes to the tier. Coded forms are made again where they are wanted. */
export const toTier = (stored: StoredResponse, ageMs: number): TierRecord => ({
  key: stored.key,
  tags: stored.tags,
  varyNames: stored.varyNames,
  varyKey: stored.varyKey,
  ageMs,
  lifetimeMs: stored.lifetimeMs,
  facts: {
    status: stored.status,
    fields: stored.fields,
    staleWhileRevalidateMs: stored.staleWhileRevalidateMs,
    staleIfErrorMs: stored.staleIfErrorMs,
    neverStale: stored.neverStale,
    codable: stored.codable,
    upstreamTag: stored.upstreamTag ?? null,
  },
  content: stored.content,
})

/** What node:http sends: RFC 9110 §5.1 and §5.5. */
const namePattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/

const areFields = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.length % 2 === 0 &&
  value.every((one, at) => typeof one === 'string' && (at % 2 === 0 ? namePattern : valuePattern).test(one))

const isAmount = (value: unknown): boolean =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER

/** Is that what `toTier` wrote? */
export const isFacts = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null) return false
  const { status, fields, upstreamTag, ...facts } = value as Record<keyof TierFacts, unknown>
  return (
    Number.isInteger(status) &&
    Number(status) >= 200 &&
    Number(status) <= 599 &&
    areFields(fields) &&
    (upstreamTag === null || typeof upstreamTag === 'string') &&
    [facts.staleWhileRevalidateMs, facts.staleIfErrorMs].every(isAmount) &&
    [facts.neverStale, facts.codable].every((one) => typeof one === 'boolean')
  )
}

/** What came from the tier, as of this process. */
export const fromTier = (
  record: TierRecord,
  received: StoredResponse['received'],
  order: number,
): StoredResponse => {
  const { facts } = record
  // Member by member, in the order of `makeStored`: see there.
  const made: StoredResponse = {
    status: facts.status,
    fields: facts.fields,
    key: record.key,
    content: ownBytes(record.content),
    extent: undefined,
    varyNames: record.varyNames,
    varyKey: record.varyKey,
    received,
    initialAgeMs: record.ageMs,
    lifetimeMs: record.lifetimeMs,
    staleWhileRevalidateMs: facts.staleWhileRevalidateMs,
    staleIfErrorMs: facts.staleIfErrorMs,
    validateAlways: false,
    neverStale: facts.neverStale,
    upstreamTag: facts.upstreamTag ?? undefined,
    tags: [],
    codable: facts.codable,
    forms: [],
    bytes: 0,
    order,
    hits: 0,
    ready: -1,
  }
  return tagged(made, record.tags)
}
