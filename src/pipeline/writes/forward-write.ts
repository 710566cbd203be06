import { pipeline } from 'node:stream'
import type { Cache } from '../../cache/cache.ts'
import { forbidsStoring } from '../../cache/decide-caching.ts'
import type { PostResponse } from '../../cache/store-post-response.ts'
import type { Row } from '../../contracts/row.ts'
import { GatewayError } from '../../errors.ts'
import { discard, EndSignal, fieldValue, type GatewayResponse, teeContent } from '../../http/message.ts'
import { asOutgoing, type Next, type Outgoing, type Ready } from '../exchange.ts'
import { completed, invalidateWrite, showsOwnTarget, writeNotes } from '../invalidate-write.ts'
import type { CacheContext } from '../phase-options.ts'
import { codingsToPass, ExchangeRead, ownConditions, publicPart, tagConditions, uncoded } from '../reads.ts'
import type { Service } from '../service.ts'

type TrackedWrite = {
  /** No other write to one of its services was in flight since it began. */
  isAlone(): boolean
  /** Only the first call counts. */
  end(): void
}

type StartedWrite = { disturbed: boolean }

/** The writes in flight to one service: their number, and the one that is still alone. */
type InFlight = { count: number; alone: StartedWrite | undefined }

const enter = (inFlight: InFlight, write: StartedWrite): void => {
  if (inFlight.count === 0) inFlight.alone = write
  else {
    write.disturbed = true
    if (inFlight.alone !== undefined) inFlight.alone.disturbed = true
    inFlight.alone = undefined
  }
  inFlight.count += 1
}

const leave = (inFlight: InFlight, write: StartedWrite): void => {
  inFlight.count -= 1
  if (inFlight.alone === write) inFlight.alone = undefined
}

/** Stored responses show the item before a write only while no other write is in flight. */
export const createConcurrentWrites = () => {
  // Bounded by the services that have ever been configured. Counts instead of a Set of writes: docs/decisions/0013.
  const services = new Map<string, InFlight>()
  const inFlightTo = (service: string): InFlight => {
    const known = services.get(service)
    if (known !== undefined) return known
    const inFlight: InFlight = { count: 0, alone: undefined }
    services.set(service, inFlight)
    return inFlight
  }
  return {
    /** `names`: all services whose upstream the write reaches. */
    begin: (names: readonly string[]): TrackedWrite => {
      const write = { disturbed: false }
      const reached = names.map(inFlightTo)
      for (const inFlight of reached) enter(inFlight, write)
      let hasEnded = false
      return {
        isAlone: () => !write.disturbed,
        end: () => {
          if (hasEnded) return
          hasEnded = true
          for (const inFlight of reached) leave(inFlight, write)
        },
      }
    },
  }
}

/** The cache outlives the configurations under which its services are written to. */
const writesOfCaches = new WeakMap<Cache, ReturnType<typeof createConcurrentWrites>>()

const concurrentWritesOf = (cache: Cache) => {
  const known = writesOfCaches.get(cache) ?? createConcurrentWrites()
  writesOfCaches.set(cache, known)
  return known
}

/** Begins with all services of the same upstream, since a write through one of them changes what the others store. */
const track = ({ cache }: CacheContext, { service }: Ready): TrackedWrite =>
  concurrentWritesOf(cache).begin([service.name, ...service.sharing().map(({ name }) => name)])

/** RFC 9110 §9.3.3: the response to a POST may serve later reads; only the profile `rfc-shared-cache` uses that. */
const storableResponse = ({ cache, forwarding }: CacheContext, exchange: Ready): PostResponse | undefined => {
  const { method, policy, request, service } = exchange
  if (method !== 'POST' || policy.profile !== 'rfc-shared-cache' || service.contract !== 'open')
    return undefined
  if (forbidsStoring(request.fields)) return undefined
  return cache.postResponse(new ExchangeRead(exchange, publicPart, tagConditions, forwarding))
}

const mayBeStored = (service: Service): boolean =>
  service.storesAnswers || service.sharing().some(({ storesAnswers }) => storesAnswers)

/** Announces the write to the other processes that store responses of its upstream; gives the id of the announcement. */
const announce = async ({ announcer }: CacheContext, exchange: Ready): Promise<string | undefined> => {
  if (announcer === undefined) return undefined
  const begun = await announcer.begin(writeNotes(exchange, undefined), mayBeStored(exchange.service))
  // The connection to the shared store is tried again several times a second.
  if (begun.kind === 'refused')
    throw new GatewayError('shared_store_unreachable', { retryAfterSeconds: 1, unsent: true })
  return begun.write
}

/** The response to an upload names the new item and what it belongs to, which bounds what has to be invalidated. */
const namesNewItem = ({ contract }: Service, { kind }: Row): boolean =>
  contract === 'site' && kind === 'collection'

/** Is the response streamed to the client? Otherwise it is read whole, because its content shows what the write has changed. */
const streamsResponse = ({ origin, method, service, matching, content }: Ready): boolean => {
  // An item of a batch has no connection.
  if (origin === 'batch' || method === 'GET' || method === 'HEAD') return false
  // The tags of these follow from status and header fields.
  const isUnread = service.contract === 'open' || service.contract === 'openapi'
  if (isUnread || matching.kind === 'unlisted') return true
  if (content === undefined || Buffer.isBuffer(content)) return false
  return matching.kind !== 'found' || !namesNewItem(service, matching.row)
}

/**
 * Forwards the write with its own signal: a client that disconnects does not end it, so that its outcome is known. Otherwise
 * clients could empty the cache by sending writes and disconnecting. A content that streams ends with its client all the same.
 */
const forward = async (
  { budget }: CacheContext,
  exchange: Ready,
  next: Next<Outgoing>,
  isRead: boolean,
): Promise<GatewayResponse> => {
  const response = await next(
    asOutgoing(exchange, {
      extraFields: ownConditions(exchange.request.fields),
      withheld: tagConditions,
      acceptEncoding: isRead ? uncoded : codingsToPass(exchange),
      background: false,
      signal: new EndSignal(),
    }),
  )
  return streamsResponse(exchange)
    ? response
    : completed(response, exchange.service.bodyBytes, budget('write-answer', exchange.client.address))
}

/** The upstream did not get the whole request, so it did not carry it out. */
const wasIncomplete = (error: unknown): boolean =>
  error instanceof GatewayError && (error.unsent || error.incomplete)

type Write = { readonly tracked: TrackedWrite; readonly announced: string | undefined }

/**
 * Invalidates what the write may have changed: in this process at once, in others when the promise resolves. Without a response
 * the outcome is unknown.
 */
const invalidate = (
  { cache, announcer }: CacheContext,
  exchange: Ready,
  { tracked, announced }: Write,
  response: GatewayResponse | undefined,
): Promise<unknown> | undefined => {
  const notes = writeNotes(exchange, response, tracked.isAlone() ? cache.contentsWithTag : undefined)
  tracked.end()
  invalidateWrite(cache, exchange, notes)
  return announcer?.spread(notes, announced)
}

/** Ends a write that failed: what it may have changed is invalidated, unless the upstream cannot have carried it out. */
const abandon = async (
  context: CacheContext,
  exchange: Ready,
  write: Write,
  error: unknown,
): Promise<void> => {
  if (!wasIncomplete(error)) await invalidate(context, exchange, write, undefined)
  else if (write.announced !== undefined) {
    write.tracked.end()
    await context.announcer?.spread([], write.announced)
  }
}

/** The response with its content stored for later reads, when all of it has been sent to the client. */
const storingContent = (written: PostResponse, response: GatewayResponse): GatewayResponse => {
  const store = written.begin(response)
  const declared = fieldValue(response.fields, 'content-length')
  const bytes = declared === undefined ? undefined : Number(declared)
  const tee = teeContent(written.maxBytes, bytes, written.reservation, store)
  const { content } = response
  if (content === undefined || Buffer.isBuffer(content)) tee.end(content)
  // An error on either side ends both; the reader of `tee` sees it.
  else pipeline(content, tee, () => {})
  return { status: response.status, fields: response.fields, content: tee }
}

/**
 * Announces a write, forwards it, invalidates what it may have changed, here and wherever else it is stored, and only then
 * acknowledges it: a read that begins after the response gets nothing older.
 */
export const forwardWrite = async (
  context: CacheContext,
  exchange: Ready,
  next: Next<Outgoing>,
): Promise<GatewayResponse> => {
  const tracked = track(context, exchange)
  const streams = streamsResponse(exchange)
  const storable = storableResponse(context, exchange)
  let response: GatewayResponse | undefined
  try {
    const write = { tracked, announced: await announce(context, exchange) }
    try {
      response = await forward(context, exchange, next, !streams || storable !== undefined)
    } catch (error) {
      await abandon(context, exchange, write, error)
      throw error
    }
    if (!streams) {
      await invalidate(context, exchange, write, response)
      return response
    }
    const isStored =
      storable !== undefined && showsOwnTarget(exchange, response) && storable.isStorable(response)
    // The content has not been read, so the row and the path decide.
    const spread = invalidate(context, exchange, write, { ...response, content: undefined })
    // Before the wait, so that invalidations by other writes during it count.
    const answer = isStored ? storingContent(storable, response) : response
    await spread
    return answer
  } catch (error) {
    discard(response?.content)
    throw error
  } finally {
    tracked.end()
  }
}
