import { getHeapStatistics } from 'node:v8'
import { Cache } from '../../cache/cache.ts'
import type { Clock } from '../../clock.ts'
import type { WorkerLink } from '../../cluster/worker-link.ts'
import type { Config } from '../../config/config.ts'
import { createWritesInFlight } from '../../exchange/writes-in-flight.ts'
import { createBufferedBytes } from '../../server/buffered-bytes.ts'
import { workersOf } from '../workers.ts'
import { Broadcast } from './broadcast.ts'
import type { CurrentSnapshot } from './current-snapshot.ts'
import { connectDownstreams } from './downstreams.ts'
import { prepareMembership } from './membership.ts'
import type { Observation } from './observation.ts'

const mebibyte = 1024 * 1024

/** The program and the young generation take up to 96 MiB of the heap; of the rest, half is for requests and for garbage. */
const heapForCache = (limit: number): number => Math.max((limit - 96 * mebibyte) / 2, 16 * mebibyte)

type StorageParts = Pick<Observation, 'logger' | 'metrics' | 'redaction'> & {
  readonly config: Config
  readonly clock: Clock
  readonly current: CurrentSnapshot
  readonly worker: WorkerLink | undefined
}

/** Creates the cache, and connects it with everything that has to learn of a write: other processes, and caches in front of the gateway. */
export const createStorage = async (parts: StorageParts) => {
  const { config, clock, current, logger, metrics, redaction, worker } = parts
  const { maxEntryBytes, admission, compression } = config.cache
  const membership = await prepareMembership({ config, clock, logger, metrics, worker })
  if (membership === undefined) metrics.setAlone()
  const maxBytes = Math.floor(config.cache.maxBytes / (worker === undefined ? 1 : workersOf(config)))
  const buffered = createBufferedBytes({
    maxBytes: () => current.config.limits.bufferedBytes,
    report: metrics.observe.edge,
  })
  const cache = new Cache({
    ...membership?.forCache,
    maxBytes,
    maxHeapBytes: heapForCache(getHeapStatistics().heap_size_limit),
    maxEntryBytes,
    admission,
    budget: buffered.budget,
    compression: { codings: compression.encodings, minBytes: compression.minBytes },
    clock,
    redaction,
    report: metrics.observe.cache,
  })
  const downstreams = connectDownstreams({ clock, metrics, logger })
  const coherence = membership?.join({
    cache,
    documentsStale: (service, collection) => current.markDocumentsStale(service, collection),
    changedElsewhere: downstreams.changedElsewhere,
  })
  const broadcast = new Broadcast(coherence, downstreams)
  const writes = createWritesInFlight()
  return { membership, maxBytes, buffered, cache, writes, downstreams, coherence, broadcast }
}

export type Storage = Awaited<ReturnType<typeof createStorage>>
