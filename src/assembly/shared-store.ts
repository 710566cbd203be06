import type { SharedTier } from '../cache/shared-tier.ts'
import type { CoherenceOptions } from '../coherence/coherence.ts'
import type { Ledger, Position } from '../coherence/ledger.ts'
import type { MembershipParts } from './membership-parts.ts'

/** What instances share: the ledger, and a second tier of stored responses. */
export type SharedStore = {
  readonly ledger: Ledger
  readonly tier: SharedTier & { close(): void }
  /** What was noted makes entries of the second tier outdated. */
  noted(notes: Parameters<CoherenceOptions['apply']>[0]): void
  restarted(at: Position): void
}

/** How this process stands. */
export type StoreStanding = {
  place(): Position
  mayTrust(): boolean
  readonly targetTag: (key: string) => string
}

/** As many as the ledger remembers. */
const rememberedTags = 16_384
/** A miss must not wait long for a store that is slow. */
const tierTimeoutMs = 250

/** Loaded only where it is wanted: whoever runs one process needs no client of a store. */
export const sharedStore = async (
  { clock, config, logger, metrics }: MembershipParts,
  member: string,
  standing: StoreStanding,
): Promise<SharedStore> => {
  const [{ createRedisLedger }, { createTier }, { createNotedTags }] = await Promise.all([
    import('../shared-tier/redis-ledger.ts'),
    import('../shared-tier/tier.ts'),
    import('../shared-tier/noted-tags.ts'),
  ])
  const { cluster, prefix, leaseMs, forgetAfterMs } = config.cache.shared
  const url = config.cache.shared.url.reveal()
  const report = metrics.observe.sharedTier
  const tags = createNotedTags(rememberedTags)
  const ledger = createRedisLedger({
    url,
    cluster,
    prefix,
    member,
    leaseMs,
    forgetAfterMs,
    timeoutMs: leaseMs / 2,
    changed: (state) => {
      report({ kind: 'connection', state })
      logger.info({ state }, 'shared-connection')
    },
  })
  const tier = createTier({
    url,
    cluster,
    prefix,
    timeoutMs: tierTimeoutMs,
    noted: tags,
    ...standing,
    clock,
    report,
  })
  return {
    ledger,
    tier,
    noted: (notes) => {
      for (const { seq, note } of notes) {
        if (note.kind === 'tag' || note.kind === 'hold') tags.note(note.tag, seq)
        // What a prefix covers cannot be looked up by it: everything that was stored before is in doubt.
        else if (note.kind !== 'documents') tags.noteAll(seq)
      }
    },
    restarted: ({ epoch, applied }) => tags.restart(epoch, applied),
  }
}
