import { createHash, createHmac } from 'node:crypto'
import type { LedgerPosition } from '../cache/shared-tier.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { IdempotencyStore } from '../exchange/ports.ts'
import type { SharedTierEvent } from './events.ts'
import { type CoherenceOptions, maxLedgerEntries } from './ledger.ts'
import type { RedisConnection } from './redis/connections.ts'
import type { ChangePositions } from './redis/stores.ts'

type SharedStoreParts = {
  readonly config: Config
  readonly clock: Clock
  readonly logger: { info(facts: object, message: string): void; warn(facts: object, message: string): void }
  readonly report: (event: SharedTierEvent) => void
}

type StoreStatus = {
  position(): LedgerPosition
  mayTrust(): boolean
  readonly targetTag: (key: string) => string
}

/** Longest wait of a miss for the store. */
const tierTimeoutMs = 250
/** Replies of the ledger and answers stored for idempotency keys stay far below. */
const otherReplyBytes = 64 * 1024 * 1024
/** Head and signature of an entry, beside its content. */
const besidesBytes = 512 * 1024
const maxStoredResponseBytes = otherReplyBytes / 2

type StoreParts = {
  readonly connection: RedisConnection
  readonly prefix: string
  readonly secrets: readonly string[]
  /** All instances use the same one, so that they count one client as one. */
  readonly salt: string | Buffer
}

/** What instances share beside stored responses and invalidations. */
const createStores = async ({ connection, prefix, secrets, salt }: StoreParts) => {
  const [{ createChangePositions, createCountedRequests, createIdempotencyKeys }, { createSignatures }] =
    await Promise.all([import('./redis/stores.ts'), import('./redis/values.ts')])
  return {
    limits: createCountedRequests(connection, prefix),
    /** The same hash of a credential on all instances. */
    partitionOf: (credential: string): string =>
      createHmac('sha256', salt).update(credential).digest('base64url'),
    /** How far the changes of a service have been applied in all instances. */
    changePosition: (service: string): ChangePositions =>
      createChangePositions(connection, {
        prefix,
        service,
        signatures: createSignatures(secrets, 'position'),
      }),
    idempotencyKeys: ({
      ttlMs,
      maxBytes,
    }: { readonly [Limit in 'ttlMs' | 'maxBytes']: number }): IdempotencyStore =>
      createIdempotencyKeys(connection, {
        prefix,
        signatures: createSignatures(secrets, 'answer'),
        ttlMs,
        maxBytes: Math.min(maxBytes / 8, maxStoredResponseBytes),
      }),
  }
}

/** The ledger and the second tier of stored responses in Redis. The client is loaded only when a store is configured. */
export const sharedStore = async (
  { clock, config, logger, report }: SharedStoreParts,
  member: string,
  status: StoreStatus,
) => {
  const [
    { createRedisLedger },
    { createInvalidatedTags, createTier },
    { connect, createErrorReporter },
    { createSignatures, subkey },
  ] = await Promise.all([
    import('./redis/redis-ledger.ts'),
    import('./redis/tier.ts'),
    import('./redis/connections.ts'),
    import('./redis/values.ts'),
  ])
  const { cluster, prefix, leaseMs, forgetAfterMs, tls: pem } = config.cache.shared
  const url = config.cache.shared.url.reveal()
  const tls = { ...pem, ca: pem.ca.reveal(), cert: pem.cert.reveal(), key: pem.key.reveal() }
  const secrets = config.cache.shared.key.map((key) => key.reveal())
  const troubled = createErrorReporter(clock.monotonic, (trouble, isNews) => {
    report({ kind: 'store-trouble', trouble })
    if (isNews) logger.warn({ trouble }, 'shared-trouble')
  })
  const tags = createInvalidatedTags(maxLedgerEntries)
  const maxReplyBytes = otherReplyBytes + config.cache.maxEntryBytes
  const ledger = createRedisLedger({
    url,
    cluster,
    tls,
    prefix,
    member,
    leaseMs,
    forgetAfterMs,
    timeoutMs: leaseMs / 2,
    maxReplyBytes,
    troubled,
    signatures: {
      invalidations: createSignatures(secrets, 'note'),
      acknowledgements: createSignatures(secrets, 'acknowledgement'),
    },
    changed: (state) => {
      report({ kind: 'connection', state })
      logger.info({ state }, 'shared-connection')
    },
  })
  const connection = connect(
    { url, cluster, tls, troubled, maxReplyBytes, timeoutMs: tierTimeoutMs },
    () => undefined,
  )
  // Without a key it is derived from the URL.
  const [signing] = secrets
  const salt =
    signing === undefined
      ? createHash('sha256').update(`trellis ${prefix} ${url}`).digest()
      : subkey(signing, 'caller')
  const tier = createTier({
    connection,
    prefix,
    invalidated: tags,
    ...status,
    signatures: createSignatures(secrets, 'entry'),
    maxBytes: config.cache.maxEntryBytes + besidesBytes,
    clock,
    report,
    troubled,
  })
  return {
    ledger,
    tier,
    stores: await createStores({ connection, prefix, secrets, salt }),
    close: (): void => connection.disconnect(),
    /** Applies invalidations to the second tier. */
    invalidated: (invalidations: Parameters<CoherenceOptions['apply']>[0]): void => {
      for (const { seq, invalidation } of invalidations) {
        if (invalidation.kind === 'tag' || invalidation.kind === 'quarantine')
          tags.invalidate(invalidation.tag, seq)
        // Entries cannot be found by prefix: every entry stored before is stale.
        else if (invalidation.kind !== 'documents') tags.invalidateAll(seq)
      }
    },
    restarted: ({ epoch, applied }: LedgerPosition): void => tags.restart(epoch, applied),
  }
}

export type SharedStores = Awaited<ReturnType<typeof sharedStore>>['stores']
