import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type {
  Claim,
  LedgerPosition,
  SharedTier,
  Tagged,
  TierQuery,
  TierRecord,
} from '../../cache/shared-tier.ts'
import type { Clock } from '../../clock.ts'
import { createLastNumbers } from '../../http/memo.ts'
import type { SharedTierEvent, TierLookup, TierRefusal, TierStep } from '../events.ts'
import { type RedisConnection, scriptOn, type Troubled } from './connections.ts'
import {
  decodeEntry,
  type Entry,
  type EntryHead,
  encodeEntry,
  encodeSelected,
  entryVersion,
  type Signatures,
} from './values.ts'

/**
 * The ledger's number of the last invalidation of each tag: entries stored before it are stale. Stores as many tags as the
 * ledger; older ones count as recorded.
 */
export const createInvalidatedTags = (maxTags: number) => {
  const numbers = createLastNumbers(maxTags)
  let epoch = ''
  return {
    invalidate: numbers.set,
    /** Marks every entry that was stored before as stale. */
    invalidateAll: numbers.setAll,
    /** A new ledger, or one that has forgotten older invalidations. */
    restart: (nextEpoch: string, floor: number): void => {
      epoch = nextEpoch
      numbers.restart(floor)
    },
    /** Was any of the tags recorded after that number, or is that unknown? */
    touchedSince: (tags: readonly string[], ofEpoch: string, seq: number): boolean =>
      ofEpoch !== epoch || numbers.isAfter(tags, seq),
  }
}

export type TierOptions = {
  readonly connection: RedisConnection
  readonly prefix: string
  readonly invalidated: Pick<ReturnType<typeof createInvalidatedTags>, 'touchedSince'>
  readonly targetTag: (key: string) => string
  readonly signatures: Signatures
  /** Largest entry that is read. */
  readonly maxBytes: number
  /** Number of the last invalidation that this process has received. */
  readonly position: () => SharedTier['position']
  /** Does this process receive the invalidations of other writers? */
  readonly mayTrust: () => boolean
  readonly clock: Clock
  readonly report: (event: SharedTierEvent) => void
  readonly troubled: Troubled
}

/** Pause after a failure: a slow store must not slow every miss. */
const restMs = 1_000
/** A response that is fresh for less time is not stored. */
const minRetentionMs = 1_000
const maxRetentionMs = 86_400_000
/** Clocks of two machines differ by less; an entry from further in the future is not from an instance. */
const maxAheadMs = 60_000
/** Longest wait for another instance, and lifetime of a claim whose owner died. */
const waitMs = 2_000
const firstPauseMs = 10
const longestPauseMs = 160

/** Refusals that hold for every instance, whatever its configuration. */
const isWrongForAll: ReadonlySet<TierRefusal> = new Set(['malformed', 'signature', 'key', 'age', 'fields'])

/** Deletes a value that is still the one that was refused, or none that an instance writes: another instance may have stored a new entry. */
const deleteScript = `if redis.call('TYPE', KEYS[1]).ok == 'string' and redis.sha1hex(redis.call('GET', KEYS[1])) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

const releaseScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

type NamedEntry = Pick<TierQuery<unknown>, 'key' | 'contentId'>

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')

const noBytes = Buffer.alloc(0)

/** A value of the store under its name; without bytes where it is no text. */
type Value = { readonly at: string; readonly bytes: Buffer }

type Read = Value & { readonly entry: Entry; readonly leftMs: number }

class RedisTier implements SharedTier {
  readonly #options: TierOptions
  readonly #store: RedisConnection
  readonly #release: ReturnType<typeof scriptOn>
  readonly #delete: ReturnType<typeof scriptOn>
  #restsUntil = Number.NEGATIVE_INFINITY
  readonly #unclaimed = { kind: 'mine', release: () => undefined } as const

  constructor(options: TierOptions) {
    this.#options = options
    this.#store = this.#options.connection
    this.#release = scriptOn(this.#store, releaseScript)
    this.#delete = scriptOn(this.#store, deleteScript)
  }

  get position() {
    return this.#options.position()
  }

  store(record: TierRecord, since: LedgerPosition): void {
    const keptMs = Math.floor(Math.min(record.lifetimeMs - record.ageMs, maxRetentionMs))
    if (keptMs < minRetentionMs || since.epoch === '' || this.#isResting() || !this.#options.mayTrust())
      return
    const { ageMs, content, facts, key, tags, varyKey, varyNames } = record
    const storedAt = Math.floor(this.#options.clock.now())
    const parts = encodeEntry(
      { version: entryVersion, key, tags, varyKey, ageMs, facts, ...since, keptMs, storedAt },
      content,
    )
    if (parts === undefined) return
    let bytes = 0
    const put = (at: string, signed: readonly Buffer[]): Promise<unknown> => {
      const whole = this.#options.signatures.sign(at, signed)
      bytes += whole.length
      return this.#store.set(at, whole, 'PX', keptMs)
    }
    const writes =
      varyNames.length === 0
        ? [put(this.#entryKey(record), parts)]
        : [
            put(this.#entryKey(record), encodeSelected(varyNames)),
            put(this.#variantKey(record, varyKey), parts),
          ]
    Promise.all(writes).then(
      () => this.#options.report({ kind: 'tier-stored', bytes }),
      (cause: unknown) => this.#failed('store', cause),
    )
  }

  async claim<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Claim<Taken>> {
    if (!this.#options.mayTrust() || this.#isResting()) return this.#unclaimed
    const token = randomBytes(9).toString('base64url')
    try {
      const reply = await this.#store.set(this.#claimKey(query), token, 'PX', waitMs, 'NX')
      if (reply === null) {
        return {
          kind: 'theirs',
          wait: async () => {
            const record = await this.#whenOver(query)
            this.#options.report({
              kind: 'tier-waited',
              outcome: record === undefined ? 'not-found' : 'found',
            })
            return record
          },
        }
      }
    } catch (cause) {
      this.#failed('claim', cause)
      return this.#unclaimed
    }
    return {
      kind: 'mine',
      release: () => {
        // Sent after the entry: one connection keeps the order.
        this.#release([this.#claimKey(query)], [token]).catch(() => undefined)
      },
    }
  }

  // The digest is the hash tag: all entries of one key are in one slot of a cluster. Instances of each version have their own entries.
  #entryKey(named: NamedEntry): string {
    return `${this.#options.prefix}:e:${entryVersion}:{${digest(named.contentId + named.key)}}`
  }

  #claimKey(named: NamedEntry): string {
    return `${this.#options.prefix}:c:${entryVersion}:{${digest(named.contentId + named.key)}}`
  }

  #variantKey(named: NamedEntry, secondary: string): string {
    return `${this.#entryKey(named)}:${digest(secondary)}`
  }

  #isResting(): boolean {
    return this.#options.clock.monotonic() < this.#restsUntil
  }

  #failed(step: TierStep, cause: unknown): void {
    this.#options.troubled(cause)
    this.#restsUntil = this.#options.clock.monotonic() + restMs
    this.#options.report({ kind: 'tier-failed', step })
  }

  /** An entry that no instance can use is deleted; an entry that only this instance refuses may serve others. */
  #refuse(reason: TierRefusal, { at, bytes }: Value): 'refused' {
    this.#options.report({ kind: 'tier-refused', reason })
    if (reason === 'signature') this.#options.troubled(new Error('UNSIGNED entry'))
    if (isWrongForAll.has(reason)) {
      const refused = createHash('sha1').update(bytes).digest('hex')
      this.#delete([at], [refused]).catch(() => undefined)
    }
    return 'refused'
  }

  async #bytesAt(at: string): Promise<Buffer | 'wrong type'> {
    try {
      const bytes = await this.#store.getrangeBuffer(at, 0, this.#options.maxBytes)
      if (!Buffer.isBuffer(bytes)) throw new Error('MALFORMED entry')
      return bytes
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return 'wrong type'
      throw error
    }
  }

  async #get(at: string): Promise<Read | 'absent' | 'refused'> {
    // The remaining lifetime is read first: an entry stored between the two reads then looks older than it is, not younger.
    const [leftMs, bytes] = await Promise.all([this.#store.pttl(at), this.#bytesAt(at)])
    if (!Number.isSafeInteger(leftMs)) throw new Error('MALFORMED entry')
    if (bytes === 'wrong type') return this.#refuse('malformed', { at, bytes: noBytes })
    if (bytes.length === 0) return 'absent'
    if (bytes.length > this.#options.maxBytes) return this.#refuse('size', { at, bytes })
    const content = this.#options.signatures.verified(at, bytes)
    if (content === undefined) return this.#refuse('signature', { at, bytes })
    const entry = decodeEntry(content)
    return entry === undefined ? this.#refuse('malformed', { at, bytes }) : { at, bytes, entry, leftMs }
  }

  async #select<Taken>(query: TierQuery<Taken>): Promise<Read | 'absent' | 'refused'> {
    const first = await this.#get(this.#entryKey(query))
    if (typeof first === 'string' || first.entry.kind === 'entry') return first
    return this.#get(this.#variantKey(query, query.secondary(first.entry.varyNames)))
  }

  /** Its age by both clocks; the larger one counts. */
  #ageOf({ ageMs, keptMs, storedAt }: EntryHead, leftMs: number): number | undefined {
    const aheadMs = storedAt - this.#options.clock.now()
    const isPossible = leftMs > 0 && leftMs <= keptMs && keptMs <= maxRetentionMs && aheadMs <= maxAheadMs
    return isPossible ? ageMs + Math.max(keptMs - leftMs, -aheadMs) : undefined
  }

  #recordIn<Taken extends Tagged>(
    read: Read,
    { key, take }: TierQuery<Taken>,
  ): Taken | 'absent' | 'outdated' | 'refused' {
    // A second list of selecting headers behind the first is not supported.
    const { entry, leftMs } = read
    if (entry.kind !== 'entry') return 'absent'
    const { head, content } = entry
    if (head.key !== key) return this.#refuse('key', read)
    // The entry was deleted between the two reads.
    if (leftMs === -2) return 'absent'
    const ageMs = this.#ageOf(head, leftMs)
    if (ageMs === undefined) return this.#refuse('age', read)
    const { facts, tags, varyKey } = head
    const record = take({ ageMs, content, facts, tags, varyKey })
    if (typeof record === 'string') return this.#refuse(record, read)
    // Checked last, with all invalidations received so far.
    const isSuperseded = this.#options.invalidated.touchedSince(
      [this.#options.targetTag(key), ...record.tags],
      head.epoch,
      head.applied,
    )
    return isSuperseded ? 'outdated' : record
  }

  async load<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Taken | undefined> {
    const tell = (outcome: TierLookup): undefined => {
      this.#options.report({ kind: 'tier-lookup', outcome })
      return undefined
    }
    if (!this.#options.mayTrust()) return undefined
    if (this.#isResting()) return tell('resting')
    try {
      const read = await this.#select(query)
      const record = typeof read === 'string' ? read : this.#recordIn(read, query)
      if (typeof record === 'string') return tell(record)
      // The lease may have run out during the lookup.
      if (!this.#options.mayTrust()) return undefined
      tell('found')
      return record
    } catch (cause) {
      this.#failed('load', cause)
      return tell('failed')
    }
  }

  /** Waits until the entry exists, or until its fetcher has given up. */
  async #whenOver<Taken extends Tagged>(query: TierQuery<Taken>): Promise<Taken | undefined> {
    const until = this.#options.clock.monotonic() + waitMs
    for (
      let ms = firstPauseMs;
      this.#options.clock.monotonic() < until;
      ms = Math.min(ms * 2, longestPauseMs)
    ) {
      await sleep(ms)
      if (!this.#options.mayTrust() || this.#isResting()) return undefined
      let isOver: boolean
      try {
        isOver = (await this.#store.exists(this.#claimKey(query))) === 0
      } catch (cause) {
        this.#failed('claim', cause)
        return undefined
      }
      if (isOver) return this.load(query)
    }
    return undefined
  }
}

export const createTier = (options: TierOptions): SharedTier => new RedisTier(options)
