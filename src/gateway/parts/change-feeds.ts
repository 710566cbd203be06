import { randomBytes } from 'node:crypto'
import type { Cache } from '../../cache/cache.ts'
import type { Invalidation } from '../../cache/invalidation.ts'
import type { Clock } from '../../clock.ts'
import type { SharedStores } from '../../cluster/shared-store.ts'
import type { WorkerLink } from '../../cluster/worker-link.ts'
import { type ChangesConfig, changesOf, pollMsOf, type ServiceConfig } from '../../config/config.ts'
import { applyInvalidations } from '../../exchange/apply-invalidations.ts'
import type { Service } from '../../exchange/service.ts'
import type { Log } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { Change } from '../../service/tagger.ts'
import {
  type ChangeFeeds,
  createChangeFeeds,
  type FeedService,
  feedAdvice,
  pollHeaders,
  sitePath,
} from '../../wordpress/changes/change-feeds.ts'
import type { ChangeEvent } from '../../wordpress/changes/feed-state.ts'
import { type ChangeLog, type PlainChange, readChangeLog } from '../../wordpress/changes/read-changes.ts'
import { type FeedMessage, PollError } from '../../wordpress/changes/service-feed.ts'
import { type BuiltService, ownGet } from '../snapshot/build-service.ts'
import { invalidationsOfAll } from '../snapshot/reload.ts'
import type { Broadcast } from './broadcast.ts'
import type { CurrentSnapshot } from './current-snapshot.ts'

const changeInvalidations = (service: Service, changes: readonly Change[]): readonly Invalidation[] => {
  const tags = service.contract.tagger.changedTags(changes)
  if (tags === undefined) return invalidationsOfAll(service)
  const dropped = tags.map((tag): Invalidation => ({ kind: 'tag', tag, mode: 'hard' }))
  // Title and tagline are in the documents that the gateway makes.
  const isDocumented = service.documents !== undefined && changes.some(({ kind }) => kind === 'option')
  return isDocumented
    ? [...dropped, { kind: 'documents', service: service.name, collection: 'settings' }]
    : dropped
}

const maxLogBytes = 1024 * 1024
const longestPollMs = 10_000

/** Until the returned function is called. When the time is over, what was requested before stays unsettled. */
const quarantineFor = (
  cache: Pick<Cache, 'quarantine' | 'quarantineUntilReleased'>,
  tag: string,
  forMs: number,
): (() => void) => {
  const release = cache.quarantineUntilReleased([tag])
  let isOver = false
  const end = (): void => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    release()
  }
  const timer = setTimeout(() => {
    cache.quarantine([tag], 0)
    end()
  }, forMs).unref()
  return end
}

type FeedLog = Pick<Log, 'info' | 'warn'>

type ChangeFeedParts = {
  readonly clock: Clock
  readonly cache: Cache
  /** Drops what invalidations reach in other processes and in front of the gateway. */
  readonly broadcast: Pick<Broadcast, 'send'>
  readonly worker: WorkerLink | undefined
  readonly stores: SharedStores | undefined
  readonly metrics: Pick<Metrics, 'observe'>
  readonly logger: FeedLog
  readonly current: CurrentSnapshot
}

const logged = (logger: FeedLog, event: ChangeEvent): void => {
  if (event.kind === 'feed-state') {
    const { service, from, to, cause } = event
    if (to === 'heard') logger.info({ service, from, to }, event.kind)
    else if (cause === undefined) logger.warn({ service, from, to }, event.kind)
    else logger.warn({ service, from, to, cause, detail: feedAdvice[cause] }, event.kind)
  } else if (event.kind === 'service-dropped') {
    logger.info({ service: event.service, reason: event.reason }, event.kind)
  }
}

/** Of feeds that stay behind, for the status page. */
export const feedNotices = (feeds: Pick<ChangeFeeds, 'statuses'>) =>
  feeds.statuses().flatMap(({ service, cause }) => {
    const text = cause && feedAdvice[cause]
    return text === undefined ? [] : [{ subject: service, text }]
  })

type Applied = number | 'unacknowledged'

/** The change feeds of this process, connected with its cache, its upstreams and the other processes. */
class FeedConnections {
  readonly #parts: ChangeFeedParts

  constructor(parts: ChangeFeedParts) {
    this.#parts = parts
  }

  /** Resolves when the entries are dropped in every process. Waits for no write: the change may be one in flight. */
  async #drop(invalidations: readonly Invalidation[], byRequest: string | undefined): Promise<Applied> {
    if (invalidations.length === 0) return 0
    const { broadcast, cache, current } = this.#parts
    const stale = (name: string, collection: string): void => current.markDocumentsStale(name, collection)
    const here = applyInvalidations(invalidations, cache, stale, 'changes', byRequest)
    const elsewhere = await broadcast.send(invalidations)
    return elsewhere.unacknowledged || elsewhere.unconfirmed ? 'unacknowledged' : here + elsewhere.entries
  }

  async #applyPlain(
    service: string,
    { tags, urls, prefixes, all }: PlainChange,
  ): Promise<Applied | { readonly refused: string }> {
    const selections = [
      ...tags.map((tag) => ({ by: 'tag', text: `${service}/upstream/${tag}` }) as const),
      ...urls.map((text) => ({ by: 'url', text }) as const),
      ...prefixes.map((text) => ({ by: 'prefix', text }) as const),
      ...(all ? [{ by: 'all' } as const] : []),
    ]
    if (selections.length === 0) return 0
    const purge = { selections, mode: 'hard', dryRun: false, service, warm: 0 } as const
    const outcome = await this.#parts.current.get().operator.purge(purge)
    if (outcome.kind === 'refused') return { refused: outcome.detail }
    return outcome.kind === 'unacknowledged' ? 'unacknowledged' : outcome.entries
  }

  async #poll(
    { name, upstream, address }: Pick<Service, 'name' | 'upstream' | 'address'>,
    { token }: ChangesConfig,
    query: string,
    timeoutMs: number,
  ): Promise<ChangeLog> {
    const nonce = randomBytes(8).toString('hex')
    const target = `${sitePath(address.basePath)}/?${query}&nonce=${nonce}`
    const request = {
      target,
      headers: pollHeaders(token.reveal(), target, this.#parts.clock),
      // A firewall or a plugin may refuse polls alone.
      isUncounted: true,
      signal: AbortSignal.timeout(timeoutMs),
    }
    const { status, content } = await ownGet(upstream, request, maxLogBytes).catch((cause: unknown) => {
      throw new PollError('unreachable', cause)
    })
    try {
      if (status === 200 && content !== undefined) return readChangeLog(content, nonce)
    } catch (cause) {
      throw new PollError('no-companion', cause)
    }
    throw new PollError('no-companion', new Error(`${name}: status ${status}`))
  }

  #portsOf({ name }: ServiceConfig, changes: ChangesConfig, timeoutMs: number): FeedService['ports'] {
    const { cache, current, stores, worker } = this.#parts
    return {
      ask: async (after, incarnation, newestRow) => {
        const service = current.serviceNamed(name)
        if (service === undefined) throw new PollError('unreachable')
        const row = newestRow === undefined ? '' : `&known=${newestRow.sequence}.${newestRow.check}`
        const query = `trellis-changes=${after}&incarnation=${incarnation}${row}`
        return this.#poll(service, changes, query, timeoutMs)
      },
      apply: async (applied, byRequest) => {
        const service = current.serviceNamed(name)
        return service === undefined ? 0 : this.#drop(changeInvalidations(service, applied), byRequest)
      },
      quarantine: (forMs) => {
        const tag = current.serviceNamed(name)?.contract.tagger.everything
        return tag === undefined ? () => undefined : quarantineFor(cache, tag, forMs)
      },
      tell: (message: FeedMessage) => {
        void worker?.ask({ topic: 'changes', content: message })
      },
      positions: stores?.changePosition(name),
    }
  }

  feedsOf(config: ServiceConfig): readonly FeedService[] {
    const changes = changesOf(config)
    if (changes === undefined) return []
    const { name, upstream } = config
    const pollMs = pollMsOf(config, changes)
    const token = changes.token.reveal()
    const timeoutMs = Math.min(longestPollMs, Math.max(1_000, pollMs))
    return [
      {
        ...{ name, token, pollMs },
        identity: JSON.stringify([token, pollMs, upstream.targets, upstream.basePath]),
        applyPlain: (change) => this.#applyPlain(name, change),
        ports: this.#portsOf(config, changes, timeoutMs),
      },
    ]
  }
}

export type ConnectedFeeds = ChangeFeeds & { useBuilt(built: readonly BuiltService[]): void }

export const connectChangeFeeds = (parts: ChangeFeedParts): ConnectedFeeds => {
  const { clock, worker, metrics, logger } = parts
  const connections = new FeedConnections(parts)
  const feeds = createChangeFeeds({
    clock,
    random: Math.random,
    startsLate: () => worker?.status().complete === true,
    report: (event) => {
      metrics.observe.changes(event)
      logged(logger, event)
    },
  })
  return {
    ...feeds,
    useBuilt: (built) => feeds.use(built.flatMap(({ config }) => connections.feedsOf(config))),
  }
}
