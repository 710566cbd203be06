import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { type Connection, type RunScript, scriptOn } from './connections.ts'
import { decodeEntry, type Entry, encodeEntry, encodeSelected } from './entry-format.ts'
import type { SharedTierEvent, TierLookup, TierStep } from './events.ts'
import type { NotedTags } from './noted-tags.ts'
import type { Troubled } from './troubles.ts'

type Place = { readonly epoch: string; readonly applied: number }

/** As in cache/shared-tier.ts; what `facts` holds is the cache's business. */
type Record = {
  readonly key: string
  readonly tags: readonly string[]
  readonly varyNames: readonly string[]
  readonly varyKey: string
  readonly ageMs: number
  readonly lifetimeMs: number
  readonly facts: never
  readonly content: Buffer
}

type Secondary = (names: readonly string[]) => string

type Claim =
  | { readonly kind: 'mine'; release(): void }
  | { readonly kind: 'theirs'; awaited(): Promise<Record | undefined> }

export type TierOptions = {
  readonly connection: Connection
  readonly prefix: string
  readonly noted: Pick<NotedTags, 'touchedSince'>
  /** The tag that stands for the target of a key. */
  readonly targetTag: (key: string) => string
  /** Is it what the cache keeps of a response? What is damaged, or of another version, is not. */
  readonly isFacts: (value: unknown) => boolean
  readonly place: () => Place
  /** Can this process hear whoever else writes? */
  readonly mayTrust: () => boolean
  readonly clock: Clock
  readonly report: (event: SharedTierEvent) => void
  readonly troubled: Troubled
}

/** Responses that several instances keep together, in a store that bounds its own memory. */
export type Tier = {
  readonly place: Place
  load(key: string, secondary: Secondary): Promise<Record | undefined>
  store(record: Record, since: Place): void
  claim(key: string, secondary: Secondary): Promise<Claim>
}

/** After a failure the store is left alone for so long: a slow one must not slow every miss. */
const restMs = 1_000
/** Shorter lives are not worth the way. */
const leastKeptMs = 1_000
const mostKeptMs = 86_400_000
/** Longest that another instance is waited for, and that a claim lasts when its owner dies. */
const waitMs = 2_000
const firstPauseMs = 10
const longestPauseMs = 160

const releaseScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const createTier = (options: TierOptions): Tier => {
  const { clock, mayTrust, noted, prefix, report } = options
  const store = options.connection
  const release: RunScript = scriptOn(store, releaseScript)
  let restsUntil = Number.NEGATIVE_INFINITY

  // The digest is the hash tag: what belongs to one key lies in one slot of a cluster.
  const entryKey = (key: string): string => `${prefix}:e:{${digest(key)}}`
  const claimKey = (key: string): string => `${prefix}:c:{${digest(key)}}`
  const variantKey = (key: string, secondary: string): string => `${entryKey(key)}:${digest(secondary)}`

  const isResting = (): boolean => clock.monotonic() < restsUntil
  const failed = (step: TierStep, cause: unknown): void => {
    options.troubled(cause)
    restsUntil = clock.monotonic() + restMs
    report({ kind: 'tier-failed', step })
  }

  type Found = { readonly entry: Entry; readonly leftMs: number }

  const get = async (key: string): Promise<Found | undefined> => {
    // What is left is asked first: one that is stored between the two then looks older than it is, not younger.
    const [leftMs, bytes] = await Promise.all([store.pttl(key), store.getBuffer(key)])
    if (bytes === null) return undefined
    if (!Buffer.isBuffer(bytes) || !Number.isSafeInteger(leftMs)) throw new Error('MALFORMED entry')
    const entry = decodeEntry(bytes)
    return entry === undefined ? undefined : { entry, leftMs }
  }

  const select = async (key: string, secondary: Secondary): Promise<Found | undefined> => {
    const first = await get(entryKey(key))
    if (first?.entry.kind !== 'selected') return first
    return get(variantKey(key, secondary(first.entry.varyNames)))
  }

  const recordOf = (
    { entry, leftMs }: Found,
    key: string,
    secondary: Secondary,
  ): Record | 'absent' | 'outdated' => {
    if (entry.kind !== 'entry') return 'absent'
    const { head, content } = entry
    if (head.key !== key || secondary(head.varyNames) !== head.varyKey) return 'absent'
    const ageMs = head.ageMs + head.keptMs - leftMs
    if (leftMs <= 0 || leftMs > head.keptMs || ageMs >= head.lifetimeMs) return 'absent'
    if (!options.isFacts(head.facts)) return 'absent'
    const tags = [options.targetTag(key), ...head.tags]
    // Looked at last, with what has been heard by now.
    if (noted.touchedSince(tags, head.epoch, head.applied)) return 'outdated'
    const { varyNames, varyKey, lifetimeMs, facts } = head
    return {
      key,
      tags: head.tags,
      varyNames,
      varyKey,
      ageMs,
      lifetimeMs,
      facts: facts as never,
      content,
    }
  }

  const lookUp = async (key: string, secondary: Secondary): Promise<Record | undefined> => {
    const tell = (outcome: TierLookup): undefined => {
      report({ kind: 'tier-lookup', outcome })
      return undefined
    }
    if (!mayTrust()) return undefined
    if (isResting()) return tell('resting')
    try {
      const found = await select(key, secondary)
      const record = found === undefined ? 'absent' : recordOf(found, key, secondary)
      if (typeof record === 'string') return tell(record)
      // The lease may have run out on the way.
      if (!mayTrust()) return undefined
      tell('found')
      return record
    } catch (cause) {
      failed('load', cause)
      return tell('failed')
    }
  }

  /** Waits until it is there, or until whoever asked for it has given up. */
  const whenOver = async (key: string, secondary: Secondary): Promise<Record | undefined> => {
    const until = clock.monotonic() + waitMs
    for (let ms = firstPauseMs; clock.monotonic() < until; ms = Math.min(ms * 2, longestPauseMs)) {
      await pause(ms)
      if (!mayTrust() || isResting()) return undefined
      let isOver: boolean
      try {
        isOver = (await store.exists(claimKey(key))) === 0
      } catch (cause) {
        failed('claim', cause)
        return undefined
      }
      if (isOver) return lookUp(key, secondary)
    }
    return undefined
  }

  const unclaimed: Claim = { kind: 'mine', release: () => undefined }

  return {
    get place() {
      return options.place()
    },
    load: lookUp,
    store: (record, since) => {
      const keptMs = Math.floor(Math.min(record.lifetimeMs - record.ageMs, mostKeptMs))
      if (keptMs < leastKeptMs || since.epoch === '' || isResting() || !mayTrust()) return
      const { content, ...head } = record
      const bytes = encodeEntry({ version: 1, ...head, ...since, keptMs }, content)
      const { key, varyNames } = record
      const writes =
        varyNames.length === 0
          ? [store.set(entryKey(key), bytes, 'PX', keptMs)]
          : [
              store.set(entryKey(key), encodeSelected(varyNames), 'PX', keptMs),
              store.set(variantKey(key, record.varyKey), bytes, 'PX', keptMs),
            ]
      Promise.all(writes).then(
        () => report({ kind: 'tier-stored', bytes: bytes.length }),
        (cause: unknown) => failed('store', cause),
      )
    },
    claim: async (key, secondary) => {
      if (!mayTrust() || isResting()) return unclaimed
      const token = randomBytes(9).toString('base64url')
      try {
        const taken = await store.set(claimKey(key), token, 'PX', waitMs, 'NX')
        if (taken === null) {
          return {
            kind: 'theirs',
            awaited: async () => {
              const record = await whenOver(key, secondary)
              report({ kind: 'tier-waited', outcome: record === undefined ? 'not-found' : 'found' })
              return record
            },
          }
        }
      } catch (cause) {
        failed('claim', cause)
        return unclaimed
      }
      return {
        kind: 'mine',
        release: () => {
          // After what was stored: both go down one connection, in this order.
          release([claimKey(key)], [token]).catch(() => undefined)
        },
      }
    },
  }
}
