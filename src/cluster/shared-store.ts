import { createHash, createHmac } from 'node:crypto'
import type { SharedTier } from '../cache/shared-tier.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { CoherenceOptions, Ledger, Position } from './ledger.ts'
import type { IdempotencyKeys } from './redis/idempotency-keys.ts'
import type { SharedTierEvent } from './redis-events.ts'

/** Counts requests of one client in one limit for all instances together. */
type RequestCounter = {
  increment(
    limit: string,
    key: string,
    windowMs: number,
  ): Promise<{ readonly count: number; readonly leftMs: number }>
}

type SharedStoreParts = {
  readonly config: Config
  readonly clock: Clock
  readonly logger: { info(facts: object, message: string): void; warn(facts: object, message: string): void }
  readonly report: (event: SharedTierEvent) => void
}

/** What the gateway's rooms keep together with those of other instances. */
export type SharedStores = {
  readonly limits: RequestCounter
  /** The same hash of a credential on all instances. */
  readonly partitionOf: (credential: string) => string
  idempotencyKeys(options: { readonly ttlMs: number; readonly maxBytes: number }): IdempotencyKeys
}

/** What instances share: the ledger, and a second tier of stored responses. */
export type SharedStore = {
  readonly stores: SharedStores
  close(): void
  readonly ledger: Ledger
  readonly tier: SharedTier
  /** What was noted makes entries of the second tier outdated. */
  noted(notes: Parameters<CoherenceOptions['apply']>[0]): void
  restarted(at: Position): void
}

/** How this process stands. */
type StoreStanding = {
  position(): Position
  mayTrust(): boolean
  readonly targetTag: (key: string) => string
}

/** As many as the ledger remembers. */
const rememberedTags = 16_384
/** A miss must not wait long for a store that is slow. */
const tierTimeoutMs = 250
/** What a ledger says at once, and what is kept for an idempotency key, stay far below. */
const otherReplyBytes = 64 * 1024 * 1024
/** What an entry has beside its content: its head and its signature. */
const besidesBytes = 512 * 1024
const mostKeptAnswerBytes = otherReplyBytes / 2

/** Loaded only where it is wanted: whoever runs one process needs no client of a store. */
export const sharedStore = async (
  { clock, config, logger, report }: SharedStoreParts,
  member: string,
  standing: StoreStanding,
): Promise<SharedStore> => {
  const [
    { createRedisLedger },
    { createTier },
    { createNotedTags },
    { createTroubled },
    { connect },
    counted,
    keys,
    { createSignatures, subkey },
  ] = await Promise.all([
    import('./redis/redis-ledger.ts'),
    import('./redis/tier.ts'),
    import('./redis/noted-tags.ts'),
    import('./redis/redis-errors.ts'),
    import('./redis/connections.ts'),
    import('./redis/counted-requests.ts'),
    import('./redis/idempotency-keys.ts'),
    import('./redis/signatures.ts'),
  ])
  const { cluster, prefix, leaseMs, forgetAfterMs, tls: pem } = config.cache.shared
  const url = config.cache.shared.url.reveal()
  const tls = { ...pem, ca: pem.ca.reveal(), cert: pem.cert.reveal(), key: pem.key.reveal() }
  const secrets = config.cache.shared.key.map((key) => key.reveal())
  const troubled = createTroubled(clock.monotonic, (trouble, isNews) => {
    report({ kind: 'store-trouble', trouble })
    if (isNews) logger.warn({ trouble }, 'shared-trouble')
  })
  const tags = createNotedTags(rememberedTags)
  const mostReplyBytes = otherReplyBytes + config.cache.maxEntryBytes
  const ledger = createRedisLedger({
    url,
    cluster,
    tls,
    prefix,
    member,
    leaseMs,
    forgetAfterMs,
    timeoutMs: leaseMs / 2,
    mostReplyBytes,
    troubled,
    signatures: {
      notes: createSignatures(secrets, 'note'),
      acknowledgements: createSignatures(secrets, 'acknowledgement'),
    },
    changed: (state) => {
      report({ kind: 'connection', state })
      logger.info({ state }, 'shared-connection')
    },
  })
  const connection = connect(
    { url, cluster, tls, troubled, mostReplyBytes, timeoutMs: tierTimeoutMs },
    () => undefined,
  )
  // Not the salt of a process: the same caller is to be counted as the same everywhere. Without a key whoever reads the store has the URL.
  const [signing] = secrets
  const salt =
    signing === undefined
      ? createHash('sha256').update(`trellis ${prefix} ${url}`).digest()
      : subkey(signing, 'caller')
  const tier = createTier({
    connection,
    prefix,
    noted: tags,
    ...standing,
    signatures: createSignatures(secrets, 'entry'),
    mostBytes: config.cache.maxEntryBytes + besidesBytes,
    clock,
    report,
    troubled,
  })
  return {
    ledger,
    tier,
    stores: {
      limits: counted.createCountedRequests(connection, prefix),
      partitionOf: (credential) => createHmac('sha256', salt).update(credential).digest('base64url'),
      idempotencyKeys: ({ ttlMs, maxBytes }) =>
        keys.createIdempotencyKeys(connection, {
          prefix,
          signatures: createSignatures(secrets, 'answer'),
          ttlMs,
          mostBytes: Math.min(maxBytes / 8, mostKeptAnswerBytes),
        }),
    },
    close: () => connection.disconnect(),
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
