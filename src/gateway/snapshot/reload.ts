import type { Notice, ReloadOutcome } from '../../admin/operator.ts'
import type { Cache } from '../../cache/cache.ts'
import { serviceKey } from '../../cache/cache-key.ts'
import type { Invalidation } from '../../cache/invalidation.ts'
import type { Config } from '../../config/config.ts'
import { faultLine } from '../../config/fault.ts'
import type { ConfigResult } from '../../config/load.ts'
import { changedKeys, restartKeys, sameSettings } from '../../config/same-settings.ts'
import type { Service } from '../../exchange/service.ts'
import { nextTurn } from '../../http/bodies/turns.ts'
import type { Log } from '../../observability/logger.ts'
import { documentChanges } from '../../openapi/hints.ts'
import { headersKeptByAccess } from '../cache-policies.ts'
import { type BuiltService, type Configured, ofService } from './build-service.ts'
import type { BuiltSnapshot } from './snapshot.ts'

/** Ends the health checks of upstreams that are not taken over; their requests in flight finish. */
const stopChecks = (ended: readonly BuiltService[], goingOn: readonly BuiltService[]): void => {
  const upstreams = new Set(goingOn.map(({ upstream }) => upstream))
  for (const { upstream } of ended) if (!upstreams.has(upstream)) upstream.upstream.stopChecks()
}

type Configuration = { readonly built: readonly BuiltService[]; readonly config: Pick<Config, 'limits'> }

/** What each response gets when it is sent, and the page of errors. */
const ofSending = { responseHeaders: undefined, cors: undefined, errorPage: undefined }

/** The settings that stored responses depend on; of `access` only the headers that the upstream does not get. */
const ofStored = ({ service, limits }: Configured): unknown => ({
  ...service,
  ...ofSending,
  access: undefined,
  stripped: headersKeptByAccess(service),
  limits: ofService(limits),
})

/** Names of the services whose stored responses are right for `next` too. */
const keptServices = (last: Configuration, next: Configuration): ReadonlySet<string> => {
  const reusable = last.built.filter((from) => {
    const to = next.built.find(({ config }) => config.name === from.config.name)
    if (to === undefined) return false
    const before = { service: from.config, limits: last.config.limits }
    return sameSettings(ofStored(before), ofStored({ service: to.config, limits: next.config.limits }))
  })
  return new Set(reusable.map(({ config }) => config.name))
}

export const invalidationsOfAll = ({
  name,
  contract: { tagger },
  documents,
}: Service): readonly Invalidation[] => [
  tagger.everything === undefined
    ? { kind: 'prefix', service: name, prefix: '', mode: 'hard' }
    : { kind: 'tag', tag: tagger.everything, mode: 'hard' },
  ...(documents === undefined ? [] : [{ kind: 'documents', service: name, collection: '' } as const]),
]

/** The services that are new in `next`, or built anew. */
const replacedServices = (last: Configuration, next: Configuration): readonly Service[] => {
  const keptNames = keptServices(last, next)
  return next.built.flatMap(({ service }) => (keptNames.has(service.name) ? [] : [service]))
}

/**
 * For as long as a write of unknown outcome may be carried out, nothing is stored for the services: what it changes has other tags there
 * than in the services that it knew.
 */
const quarantine = (cache: ReloadParts['cache'], services: readonly Service[]): readonly Invalidation[] => {
  const forMs = cache.quarantineLeftMs
  const tags = forMs === 0 ? [] : services.map(({ name }) => serviceKey(name))
  if (tags.length > 0) cache.quarantine(tags, forMs)
  return tags.map((tag) => ({ kind: 'quarantine', tag, forMs }))
}

/** Selects the stored responses to drop when `next` replaces `last`: those of all services with another configuration. */
const staleResponses = (last: Configuration, next: Configuration): ((service: string) => boolean) => {
  const keptNames = keptServices(last, next)
  return (service) => !keptNames.has(service)
}

/** Logs one line for each reload. Faults name keys and reasons, never values. */
export const logReload = (log: Pick<Log, 'info' | 'error'>, outcome: ReloadOutcome): void => {
  if (outcome.kind === 'failed') {
    log.error({ outcome: outcome.kind, err: outcome.cause }, 'reload')
    return
  }
  const { kind, ...facts } = outcome
  const level = kind === 'applied' || kind === 'unchanged' ? 'info' : 'error'
  log[level]({ outcome: kind, ...facts }, 'reload')
}

const maxShownFaults = 5

/** The first of them, and how many more there are. */
const someOf = (lines: readonly string[]): string => {
  const more = lines.length - maxShownFaults
  return `${lines.slice(0, maxShownFaults).join('; ')}${more > 0 ? `; and ${more} more` : ''}`
}

/** Why the configuration in use is not the one of the file; nothing where it is. */
export const refusedReload = (outcome: ReloadOutcome | undefined): readonly Notice[] => {
  const notice = (why: string): readonly Notice[] => [
    { subject: 'reload', text: `the file is not in use, the earlier configuration is: ${why}` },
  ]
  switch (outcome?.kind) {
    case 'invalid':
      return notice(someOf(outcome.faults))
    case 'restart-needed':
      return notice(`a restart is needed for ${someOf(outcome.keys)}`)
    case 'failed':
      return notice('an unexpected error, see the log')
    default:
      return []
  }
}

type ReloadParts = {
  readonly cache: Pick<Cache, 'purge' | 'quarantine' | 'quarantineLeftMs'>
  current(): BuiltSnapshot
  readConfig(): Promise<ConfigResult>
  build(config: Config, hash: string, last: BuiltSnapshot): Promise<BuiltSnapshot>
  /** Makes the new configuration snapshot handle the requests, synchronously. */
  replace(next: BuiltSnapshot): void
  broadcast(invalidations: readonly Invalidation[]): Promise<unknown>
  /** Reports the result, before the new configuration snapshot answers a request. */
  report(outcome: ReloadOutcome): void
  /** The previous configuration snapshot has finished its requests, and is closed. */
  ended(last: BuiltSnapshot): void
  /** Closing the previous configuration snapshot failed; it handles no requests any more. */
  endingFailed(cause: unknown): void
}

/** Replaces the last configuration snapshot, which finishes its requests and is then closed. `alive`: configuration snapshots not closed yet. */
const replace = (
  parts: ReloadParts,
  alive: Set<BuiltSnapshot>,
  last: BuiltSnapshot,
  next: BuiltSnapshot,
): void => {
  const stale = { kind: 'matching', matches: staleResponses(last, next) } as const
  // Synchronous: no request is answered under new rules from a response stored under old ones. Requests of services that have been
  // replaced store nothing from here on (`ConfigSnapshot.newestHas`).
  alive.add(next)
  last.snapshot.replaceBy(next.snapshot)
  parts.replace(next)
  stopChecks(last.built, next.built)
  parts.cache.purge({ selector: stale, mode: 'hard', dryRun: false })
  const end = async (): Promise<void> => {
    await last.inFlight.settled(last.config.drain.timeoutMs)
    alive.delete(last)
    await last.close([...alive].flatMap(({ built }) => built)).finally(() => parts.ended(last))
  }
  void end().catch(parts.endingFailed)
}

/** Reads the configuration and applies it completely or not at all; one reload at a time. */
export const createReload = (parts: ReloadParts): (() => Promise<ReloadOutcome>) => {
  const alive = new Set([parts.current()])
  const attempt = async (): Promise<ReloadOutcome> => {
    const result = await parts.readConfig()
    if (result.kind === 'faults') return { kind: 'invalid', faults: result.faults.map(faultLine) }
    const { config, hash } = result
    const last = parts.current()
    if (sameSettings(last.config, config)) return { kind: 'unchanged', hash }
    const keys = restartKeys(last.config, config)
    if (keys.length > 0) return { kind: 'restart-needed', keys }
    const next = await parts.build(config, hash, last)
    replace(parts, alive, last, next)
    const replaced = replacedServices(last, next)
    const quarantines = quarantine(parts.cache, replaced)
    // Others may have this configuration already. The writes of this process did not reach what they stored of services that it did
    // not have, although these have an upstream in common.
    await parts.broadcast([...replaced.flatMap(invalidationsOfAll), ...quarantines])
    // Two large documents are compared in a turn of their own.
    await nextTurn()
    const documents = documentChanges(last.config, config)
    const applied = { kind: 'applied', hash, changed: changedKeys(last.config, config) } as const
    return documents.length === 0 ? applied : { ...applied, documents }
  }
  let before: Promise<unknown> = Promise.resolve()
  return () => {
    const outcome = before
      .then(attempt)
      .catch((cause: unknown): ReloadOutcome => ({ kind: 'failed', cause }))
      .then((settled) => {
        parts.report(settled)
        return settled
      })
    before = outcome
    return outcome
  }
}
