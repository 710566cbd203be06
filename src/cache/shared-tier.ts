import { fieldValue, withoutFields } from '../http/fields.ts'
import { hasNoContent } from '../http/message.ts'
import type { Flight } from './fetch/collapse.ts'
import type { Errand } from './fetch/fetch-outcome.ts'
import type { Storing } from './fetch/storing.ts'
import type { Moment } from './policy/freshness.ts'
import { storableFields } from './policy/kept-fields.ts'
import { responseControl } from './policy/response-control.ts'
import { storageOf } from './policy/storage-of.ts'
import { type StoredResponse, tagged } from './store/stored-response.ts'

/** Up to where its owner had heard of changes: opaque here. */
type Place = { readonly epoch: string; readonly applied: number }

/** A stored response as it goes to a second tier: nothing in it refers to this process. */
export type TierRecord = {
  readonly key: string
  readonly tags: readonly string[]
  readonly varyNames: readonly string[]
  readonly varyKey: string
  /** When it is given to the tier. */
  readonly ageMs: number
  readonly lifetimeMs: number
  /** What the response itself is, as plain data. */
  readonly facts: TierFacts
  readonly content: Buffer
}

/** Of the fields those that the gateway does not make: the length always follows from the content. */
type TierFacts = Pick<StoredResponse, 'status' | 'fields'> & {
  /** The gateway made the entity tag: it is of no use to the upstream. */
  readonly ownTag: boolean
}

/** What the tier has under a key: nothing of it is known to be as this gateway would have written it. */
export type TierEntry = Pick<TierRecord, 'tags' | 'varyKey' | 'ageMs' | 'content'> & {
  readonly facts: unknown
}

/**
 * Why an entry is not taken. `malformed`: not what `toTier` writes; `fields`: some that are never kept; `variant`: selected by
 * other request fields; `not-storable`: what the upstream would be told by the same answer; `stale`: older than it may be here.
 */
export type TierRefusal = 'malformed' | 'fields' | 'variant' | 'size' | 'not-storable' | 'stale'

/** What is looked for, and what is made of it when it is found. */
export type TierQuery<Taken> = {
  readonly key: string
  readonly secondary: (names: readonly string[]) => string
  readonly take: (entry: TierEntry) => Taken | TierRefusal
}

/** Whether this process asks the upstream, or waits for another one that does. */
export type Claim<Taken> =
  | { readonly kind: 'mine'; release(): void }
  | { readonly kind: 'theirs'; awaited(): Promise<Taken | undefined> }

type Tagged = { readonly tags: readonly string[] }

/** Where several processes keep responses together. Nothing here rejects: what fails is absent. */
export type SharedTier = {
  readonly place: Place
  /** One that was taken and whose tags nobody has invalidated, as far as this process has heard; nothing when it cannot hear. */
  load<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Taken | undefined>
  /** `since`: the place before its forward began. */
  store(record: TierRecord, since: Place): void
  claim<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Claim<Taken>>
}

/** Is it of use to others: complete, and fresh without being asked about each time? */
export const isForTier = (stored: StoredResponse): boolean =>
  stored.extent === undefined && stored.status !== 206 && !stored.validateAlways && stored.lifetimeMs > 0

const contentLength: ReadonlySet<string> = new Set(['content-length'])

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
    fields: withoutFields(stored.fields, contentLength),
    ownTag: stored.upstreamTag === undefined,
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

/** Is that what `toTier` wrote? */
export const isFacts = (value: unknown): value is TierFacts => {
  if (typeof value !== 'object' || value === null) return false
  const { status, fields, ownTag } = value as Record<keyof TierFacts, unknown>
  return (
    Number.isInteger(status) &&
    Number(status) >= 200 &&
    Number(status) <= 599 &&
    areFields(fields) &&
    typeof ownTag === 'boolean'
  )
}

export type FromTierOptions = {
  readonly storing: Pick<Storing, 'record' | 'described'>
  readonly maxEntryBytes: number
}

/** Tags follow from the response; more of them only make it outdated earlier. */
const withTags = (stored: StoredResponse, more: readonly string[]): StoredResponse => {
  const tags = new Set(stored.tags)
  const known = tags.size
  for (const tag of more) tags.add(tag)
  return tags.size === known ? stored : tagged(stored, [...tags])
}

/**
 * What came from the tier, as if the upstream had sent it to this process as long ago as it is old: the same rules decide
 * whether it may be stored, and for how long, and which of its fields.
 */
export const fromTier = (
  { ageMs, content, facts, tags, varyKey }: TierEntry,
  errand: Errand,
  flight: Flight,
  received: Moment,
  { storing, maxEntryBytes }: FromTierOptions,
): StoredResponse | TierRefusal => {
  if (!isFacts(facts)) return 'malformed'
  if (content.length > maxEntryBytes) return 'size'
  const { fields, status } = facts
  if (storableFields(fields, responseControl(fields)).length !== fields.length) return 'fields'
  if (content.length > 0 && hasNoContent('GET', status)) return 'not-storable'
  const { read } = errand
  const head = { status, fields }
  // Whoever stored it had asked without a credential, or been allowed to share what it got with one.
  if (storageOf(head, read, received.now, false).kind === 'no-store') return 'not-storable'
  const requested = { now: received.now - ageMs, monotonic: received.monotonic - ageMs }
  const response = { ...head, content } as const
  const made = storing.record(
    errand,
    flight,
    { response, times: { requested, received } },
    { head, content },
    {
      key: read.key,
      extent: undefined,
      upstreamTag: facts.ownTag ? undefined : fieldValue(fields, 'etag'),
      forms: [],
    },
  )
  if (!isForTier(made)) return 'not-storable'
  if (made.varyKey !== varyKey) return 'variant'
  if (made.initialAgeMs >= made.lifetimeMs) return 'stale'
  const described = storing.described(read, made)
  return described === undefined ? 'not-storable' : withTags(described, tags)
}
