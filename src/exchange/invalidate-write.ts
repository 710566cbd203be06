import { Readable } from 'node:stream'
import type { Cache } from '../cache/cache.ts'
import { targetKey } from '../cache/cache-read.ts'
import type { Invalidation } from '../cache/invalidation.ts'
import {
  asTarget,
  namedTargets,
  type Shown,
  type UnsafeRequest,
  unsafePaths,
  type WriteResponse,
} from '../cache/tagger.ts'
import { overheadOfChunk, type Reservation } from '../http/bounds/byte-budget.ts'
import { headerValue, requestHeader, withHeader } from '../http/headers/header-lines.ts'
import { isJsonObject, parsedJson } from '../http/json-text.ts'
import { memoizeByObject } from '../http/memo.ts'
import type { GatewayResponse, ResponseHead } from '../http/message.ts'
import { hasDestination } from '../http/methods.ts'
import { targetOf, targetParts } from '../http/targets.ts'
import type { KeyedWriteReceipt } from '../service/contract.ts'
import { type ConfigSnapshot, type Service, upstreamTarget, type ValidatedContext } from './exchange.ts'

type Invalidator = Parameters<Cache['invalidate']>[1]

/** The list of a key, to be added to: a removed member may leave as many invalidations as a ledger stores. */
const listAt = <Key, Item>(lists: Map<Key, Item[]>, key: Key): Item[] => {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

/**
 * Applies the invalidations of a write, here or in another process, to this process's memory; returns the number of stored responses
 * concerned. All tags of a write are invalidated in one step, since most writes have dozens.
 */
export const applyInvalidations = (
  invalidations: readonly Invalidation[],
  cache: Pick<Cache, 'invalidate' | 'suspect' | 'purge'>,
  documentsStale: (service: string, collection: string) => void,
  by: Invalidator,
  shownBy?: string | undefined,
): number => {
  const dropped: string[] = []
  const quarantined = new Map<number, string[]>()
  /** By service and mode: everything that is stored is gone through once for all prefixes. */
  const under = new Map<string, Extract<Invalidation, { kind: 'prefix' }>[]>()
  let entries = 0
  for (const invalidation of invalidations) {
    if (invalidation.kind === 'documents') documentsStale(invalidation.service, invalidation.collection)
    else if (invalidation.kind === 'hold') listAt(quarantined, invalidation.forMs).push(invalidation.tag)
    else if (invalidation.kind === 'tag' && invalidation.mode === 'hard') dropped.push(invalidation.tag)
    else if (invalidation.kind === 'prefix')
      listAt(under, `${invalidation.mode} ${invalidation.service}`).push(invalidation)
    else entries += cache.purge({ selector: invalidation, mode: invalidation.mode, dryRun: false })
  }
  for (const invalidations of under.values()) {
    const { mode, service } = invalidations[0] as (typeof invalidations)[number]
    const selector = { kind: 'prefix', service, prefixes: invalidations.map(({ prefix }) => prefix) } as const
    entries += cache.purge({ selector, mode, dryRun: false })
  }
  if (dropped.length > 0) entries += cache.invalidate(dropped, by, shownBy)
  for (const [forMs, tags] of quarantined) entries += cache.suspect(tags, forMs, by)
  return entries
}

/** Names that every route takes, which change no item, and the id that the path has already. */
const ofEveryRoute: ReadonlySet<string> = new Set([
  ...['_embed', '_envelope', '_fields', '_jsonp', '_locale', '_pretty', '_wpnonce', 'context', 'id'],
])

/** Longer contents are not read a second time. */
const longestRead = 262_144

const isJson = (contentType: string | undefined): boolean =>
  contentType !== undefined && /^application\/json\s*(?:;|$)/i.test(contentType)

const membersOf = (content: Buffer): readonly string[] | undefined => {
  const value = parsedJson(content.toString())
  return isJsonObject(value) ? Object.keys(value) : undefined
}

/** `a[b][]` gives a value to `a`. */
const parametersOf = (query: string): readonly string[] =>
  [...new URLSearchParams(query).keys()].map((name) => name.split('[', 1)[0] ?? name)

/**
 * Names of all arguments to which a write gives a value, whether its route declares them or not: what they do not name the write does
 * not change. undefined when the content is no JSON object, was not read, or is long.
 */
export const givenNames = (
  query: string,
  contentType: string | undefined,
  content: Buffer | Readable | undefined,
): readonly string[] | undefined => {
  if (content !== undefined && (!Buffer.isBuffer(content) || content.length > longestRead)) return undefined
  const isEmpty = content === undefined || content.length === 0
  const members = isEmpty ? [] : isJson(contentType) ? membersOf(content) : undefined
  if (members === undefined) return undefined
  return [...parametersOf(query), ...members].filter((name) => !ofEveryRoute.has(name))
}

/** A stream of the bytes already read and of those still to come; destroying it destroys its source. */
const chained = (read: readonly Buffer[], rest: AsyncIterator<Buffer>, source: Readable): Readable =>
  Readable.from(
    (async function* () {
      yield* read
      yield* { [Symbol.asyncIterator]: () => rest }
    })(),
    { objectMode: false },
  )
    // A generator that was never started does not end its source.
    .on('close', () => source.destroy())

/**
 * The response with its content read, as far as `maxBytes` and the budget allow; otherwise it streams, beginning with what was
 * read. Nothing is left reserved afterwards.
 */
export const completed = async (
  response: GatewayResponse,
  maxBytes: number,
  reservation: Reservation,
): Promise<GatewayResponse> => {
  const { content } = response
  if (content === undefined || Buffer.isBuffer(content)) return response
  const chunks: Buffer[] = []
  let bytes = 0
  let reservedBytes = 0
  const iterator = (content as Readable).iterator({ destroyOnReturn: false })
  try {
    for (;;) {
      const step = await iterator.next()
      if (step.done === true) {
        const whole = Buffer.concat(chunks)
        const headers = withHeader(response.headers, 'Content-Length', String(whole.length))
        return { ...response, headers, content: whole }
      }
      const chunk = step.value as Buffer
      chunks.push(chunk)
      bytes += chunk.length
      const cost = chunk.length + overheadOfChunk
      const hasRoom = reservation.reserve(cost)
      if (hasRoom) reservedBytes += cost
      if (!hasRoom || bytes > maxBytes)
        return { ...response, content: chained(chunks, iterator, content as Readable) }
    }
  } finally {
    reservation.shrink(reservedBytes)
  }
}

/** A gateway at the upstream gave up: as without a response, the program behind it may still carry the write out. */
const saysNothing = ({ status }: { readonly status: number }): boolean => status === 502 || status === 504

/** The parts of a write to an open service that RFC 9111 §4.4 uses. */
const unsafeRequest = ({
  service: { address, mount },
  method,
  request,
  target,
  policy,
}: ValidatedContext): UnsafeRequest => ({
  target,
  url: `${address.roots[0]}${target}`,
  roots: address.roots,
  publicRoot: address.publicRoot,
  mount,
  destination: hasDestination(method)
    ? requestHeader(request.headers, 'destination')?.replace(/^https?:\/\/[^/?#]*/i, '')
    : undefined,
  sparedByServerError: policy.profile === 'rfc-shared-cache',
})

/** The targets of the service in a header of its response, whose URLs are those for clients (http/headers/links.ts). */
const shownTargets = (
  { service, target }: ValidatedContext,
  value: string | undefined,
): readonly string[] => {
  const { publicRoot, publicHost } = service.address
  const roots = [publicRoot, `http://${publicHost}${service.mount}`]
  return namedTargets(value, { url: publicRoot + target, roots })
}

/** Characters for one of a target that clients send: each may be an escape. */
const maxSpelling = 3

/** A target as it is keyed, however the upstream spells it; undefined for one that is too long to be requested. */
const spelled = (service: Service, target: string): string | undefined => {
  if (target.length > maxSpelling * service.limits.urlBytes) return undefined
  const { path, query } = targetParts(target)
  const matching = service.contract.find('GET', path)
  return matching.kind === 'found' ? targetOf(matching.path, query) : undefined
}

/** Does Content-Location mark the response as a representation of the request target (RFC 9110 §8.7)? */
export const showsOwnTarget = (context: ValidatedContext, head: ResponseHead): boolean => {
  const { mount, address } = context.service
  const { basePath } = address
  // Of `/api/x` it is unknown then which side it is a path of.
  if (mount.length > basePath.length && mount.startsWith(`${basePath}/`)) return false
  const named = shownTargets(context, headerValue(head.headers, 'content-location'))
  return named.some((target) => spelled(context.service, target) === context.target)
}

/** The path of the resource that a write has created (RFC 9110 §15.3.2). */
const createdPath = (context: ValidatedContext, { status, headers }: ResponseHead): string | undefined => {
  if (status !== 201 || !context.service.contract.invalidatesTargets) return undefined
  const [named] = shownTargets(context, headerValue(headers, 'location'))
  return named === undefined ? undefined : spelled(context.service, named)?.split('?', 1)[0]
}

/** Tags of one resource in the other services of the same upstream. As texts: a URL object would spell the query in another way. */
const tagsOfOthers = (snapshot: ConfigSnapshot, service: Service, target: string): readonly string[] => {
  const [path = '', ...query] = target.split('?')
  const upstreamPath = upstreamTarget(service.address, path, query.join('?'))
  const others = snapshot.sharing(service).filter(({ contract }) => contract.invalidatesTargets)
  return others.flatMap((other) => {
    const { basePath } = other.address
    const rest = upstreamPath.startsWith(basePath) ? upstreamPath.slice(basePath.length) : undefined
    const key = rest !== undefined && /^(?:[/?]|$)/.test(rest) ? spelled(other, asTarget(rest)) : undefined
    return key === undefined ? [] : targetKey(other.name, key)
  })
}

/** Tags of all that is stored for the URLs that the write changes, in whichever service they are. */
const targetTags = (context: ValidatedContext, written: WriteResponse | undefined): readonly string[] => {
  const { service, snapshot, request, target } = context
  const authority =
    requestHeader(request.headers, ':authority') ?? requestHeader(request.headers, 'host') ?? ''
  const tags = unsafePaths(unsafeRequest(context), written).flatMap((path) => {
    const owner = path === service.mount + target ? service : snapshot.serviceAt(authority, path)
    const named = owner === undefined ? undefined : spelled(owner, asTarget(path.slice(owner.mount.length)))
    if (owner === undefined || named === undefined) return []
    const isReached = owner.name === service.name && !service.contract.invalidatesTargets
    return [...(isReached ? [] : [targetKey(owner.name, named)]), ...tagsOfOthers(snapshot, owner, named)]
  })
  return [...new Set(tags)]
}

const documentInvalidations = ({ name, local }: Service, collection: string): readonly Invalidation[] =>
  local.documents === undefined ? [] : [{ kind: 'documents', service: name, collection }]

/** On what only callers are shown, each what is his own. */
const ownTags = (
  { contract: { tagger } }: Service,
  receipt: KeyedWriteReceipt | undefined,
): readonly string[] => (receipt?.kind === 'own' && tagger.callers !== undefined ? [tagger.callers] : [])

/** What a write through another service reaches: all that the service holds, or the groups that the response names (RFC 9875 §3). */
const tagsOfSharing = (
  service: Service,
  written: WriteResponse | undefined,
  receipt: KeyedWriteReceipt | undefined,
): readonly string[] => {
  const { tagger } = service.contract
  const isReported = receipt !== undefined && isCoveredByFeed(service, receipt)
  const isRead = isReported || tagger.everything === undefined
  return [
    ...tagger.writtenTags(
      undefined,
      () => undefined,
      'POST',
      isRead ? written : undefined,
      undefined,
      isReported,
    ),
    ...ownTags(service, receipt),
  ]
}

/** The response as far as it shows what was written; undefined: the outcome is unknown. */
const writtenBy = (
  context: ValidatedContext,
  response: GatewayResponse | undefined,
  receipt: KeyedWriteReceipt | undefined,
): WriteResponse | undefined => {
  // A request that was sent before may have been carried out then; 404 is the response to a second DELETE.
  const isUnsure = response?.isRepeated === true || receipt?.kind === 'rows'
  if (response === undefined || (isUnsure && response.status >= 400)) return undefined
  const content = Buffer.isBuffer(response.content) ? response.content : undefined
  return { ...response, content, created: createdPath(context, response) }
}

/** The tags of the own service, and of targets in all. */
const ownWriteTags = (
  context: ValidatedContext,
  written: WriteResponse | undefined,
  shown: Shown,
  receipt: KeyedWriteReceipt | undefined,
): readonly string[] => {
  const { service, method, matching, query, content, request, policy } = context
  const match = matching.kind === 'found' ? matching : undefined
  const argumentNames = (): readonly string[] | undefined =>
    givenNames(query, requestHeader(request.headers, 'content-type'), content)
  const isReported = receipt !== undefined && isCoveredByFeed(service, receipt)
  const isNothing = receipt?.kind === 'nothing' && policy.profile !== 'rfc-shared-cache'
  return [
    ...service.contract.tagger.writtenTags(match, argumentNames, method, written, shown, isReported),
    ...ownTags(service, receipt),
    ...(isNothing ? [] : targetTags(context, written)),
  ]
}

/** What a write may have changed; without a response its outcome is unknown. */
export const writeInvalidations = (
  context: ValidatedContext,
  response: GatewayResponse | undefined,
  /** Contents that show the state right before the write. */
  shown: Shown = () => [],
  receipt?: KeyedWriteReceipt,
): readonly Invalidation[] => {
  const { service, snapshot, matching } = context
  const written = writtenBy(context, response, receipt)
  const tags = ownWriteTags(context, written, shown, receipt)
  const forMs = service.limits.upstreamMs
  const isUnknown = written === undefined || saysNothing(written)
  const isOver = receipt !== undefined || !isUnknown
  const invalidation = (tag: string): Invalidation =>
    isOver ? { kind: 'tag', tag, mode: 'hard' } : { kind: 'hold', tag, forMs }
  const documents = (of: Service, collection: string): readonly Invalidation[] =>
    receipt === undefined || receipt.kind === 'rows' ? documentInvalidations(of, collection) : []
  const isRefused =
    tags.length === 0 && written !== undefined && written.status >= 400 && written.status < 500
  const others = isRefused ? [] : snapshot.sharing(service)
  return [
    ...tags.map(invalidation),
    ...documents(service, matching.kind === 'found' ? matching.row.collection : ''),
    ...others.flatMap((other) => [
      ...tagsOfSharing(other, written, receipt).map(invalidation),
      ...documents(other, ''),
    ]),
  ]
}

type Reaching = Pick<ValidatedContext, 'service' | 'snapshot'>

/** With all services of the same upstream, since a write through one of them changes what the others store. */
export const reachedBy = ({ service, snapshot }: Reaching): readonly Service[] => [
  service,
  ...snapshot.sharing(service),
]

/** What scheduled tasks may have changed. */
export const taskInvalidations = (reaching: Reaching): readonly Invalidation[] =>
  reachedBy(reaching).flatMap((service) => [
    ...tagsOfSharing(service, undefined, undefined).map(
      (tag): Invalidation => ({ kind: 'tag', tag, mode: 'hard' }),
    ),
    ...documentInvalidations(service, ''),
  ])

/** Invalidates what a write may have changed. To be called before the response leaves the gateway. */
export const invalidateWrite = (
  cache: Cache,
  { service, snapshot, record }: Reaching & Pick<ValidatedContext, 'record'>,
  invalidations: readonly Invalidation[],
): void => {
  const documentsStale = (name: string, collection: string): void =>
    [service, ...snapshot.sharing(service)]
      .find((candidate) => candidate.name === name)
      ?.local.documents?.written(collection)
  const entries = applyInvalidations(invalidations, cache, documentsStale, 'write')
  const tags = invalidations.flatMap((invalidation) => ('tag' in invalidation ? [invalidation.tag] : []))
  record.invalidated = { tags, entries: entries + (record.invalidated?.entries ?? 0) }
}

export type TrackedWrite = {
  /** No other write to one of its services was in flight since it began. */
  isAlone(): boolean
  /** Only the first call counts. */
  end(): void
}

/** The writes to one service: how many are in flight, and how many have begun. */
type Writes = { inFlight: number; begun: number }

/** Stored responses show the item before a write only while no other write is in flight. */
export const createConcurrentWrites = () => {
  // Bounded by the services that have ever been configured. Counts instead of a Set of writes: docs/decisions/0013.
  const services = new Map<string, Writes>()
  const writesTo = (service: string): Writes => {
    const writes = services.get(service) ?? { inFlight: 0, begun: 0 }
    services.set(service, writes)
    return writes
  }
  return {
    /** `names`: all services whose upstream the write reaches. */
    begin: (names: readonly string[]): TrackedWrite => {
      const reached = names.map(writesTo)
      const isFirst = reached.every(({ inFlight }) => inFlight === 0)
      for (const writes of reached) {
        writes.inFlight += 1
        writes.begun += 1
      }
      const numbers = reached.map(({ begun }) => begun)
      let hasEnded = false
      return {
        isAlone: () => isFirst && reached.every(({ begun }, at) => begun === numbers[at]),
        end: () => {
          if (hasEnded) return
          hasEnded = true
          for (const writes of reached) writes.inFlight -= 1
        },
      }
    },
  }
}

/** The cache outlives the configurations under which its services are written to. */
export const concurrentWritesOf = memoizeByObject((_: Cache) => createConcurrentWrites())

/** Do all changes of the request that a service may show have been dropped, or is there none? */
export const isCoveredByFeed = ({ writeReceipts }: Service, receipt: KeyedWriteReceipt): boolean =>
  receipt.kind !== 'rows' || (writeReceipts?.key === receipt.key && writeReceipts.hasApplied(receipt.rows))
