import type { Cache } from '../../cache/cache.ts'
import { forbidsStoring } from '../../cache/decide-caching.ts'
import type { PostResponse } from '../../cache/store-post-response.ts'
import { GatewayError } from '../../errors.ts'
import { withUncodedTags } from '../../http/conditional/entity-tags.ts'
import { EndSignal } from '../../http/end-signal.ts'
import { fieldValue, type RequestFields, requestField } from '../../http/fields.ts'
import type { GatewayResponse, Outcome, ShapedHead } from '../../http/message.ts'
import { teeContent } from '../../http/tee-content.ts'
import { asOutgoing, type Next, type Outgoing, type Ready } from '../exchange.ts'
import { completed, invalidateWrite, showsOwnTarget, writeNotes } from '../invalidate-write.ts'
import type { CacheRoom, WriteAnnouncer } from '../phase-options.ts'
import { ExchangeRead, publicPart } from '../reads/exchange-read.ts'
import type { Service } from '../service.ts'
import { createWriteWatch, type WriteWatch } from './concurrent-writes.ts'

/** The head of an answer to POST, with what keeps its content for later reads on the way to the client. */
const keepingContent = (written: PostResponse, shaped: ShapedHead): ShapedHead => {
  const keep = written.begin(shaped)
  const declared = fieldValue(shaped.fields, 'content-length')
  const bytes = declared === undefined ? undefined : Number(declared)
  return { ...shaped, through: teeContent(written.maxBytes, bytes, written.reservation, keep) }
}

/** What `ownConditions` says in the client's place. */
const conditions: ReadonlySet<string> = new Set(['if-match', 'if-none-match'])

/** The upstream does not know the tags of the forms that are coded here: a write under such a condition would be refused. */
const ownConditions = (fields: RequestFields): Readonly<Record<string, string>> => {
  const match = requestField(fields, 'if-match')
  const noneMatch = requestField(fields, 'if-none-match')
  return {
    ...(match === undefined ? {} : { 'if-match': withUncodedTags(match) }),
    ...(noneMatch === undefined ? {} : { 'if-none-match': withUncodedTags(noneMatch) }),
  }
}

/**
 * A write that has begun is left to finish when its client goes away, so that its outcome is known: otherwise whoever
 * sends one and hangs up could empty the cache. A content that streams ends with its client all the same.
 */
const lasting = (exchange: Ready): Outgoing =>
  asOutgoing(exchange, {
    extraFields: ownConditions(exchange.request.fields),
    withheld: conditions,
    mayHandOver: exchange.origin === 'client',
    background: false,
    // One of its own: what listens to it must go with the request.
    signal: new EndSignal(),
  })

/** The upstream never got the whole request, or nothing of it, so it did not carry it out. */
const wasIncomplete = (error: unknown): boolean =>
  error instanceof GatewayError && (error.unsent || error.incomplete)

/** RFC 9110 §9.3.3 lets an answer to POST serve later reads; only the wide profile makes use of it. */
const maybeKept = ({ cache, forwarding }: CacheRoom, exchange: Ready): PostResponse | undefined => {
  const { method, policy, request, service } = exchange
  if (method !== 'POST' || policy.profile !== 'rfc-shared-cache' || !service.invalidatesTargets)
    return undefined
  if (forbidsStoring(request.fields)) return undefined
  return cache.postResponse(new ExchangeRead(exchange, publicPart, conditions, forwarding))
}

/** A cache outlives the configurations under which it is written to. */
const watches = new WeakMap<Cache, WriteWatch>()

const watchOf = (cache: Cache): WriteWatch => {
  const watch = watches.get(cache) ?? createWriteWatch()
  watches.set(cache, watch)
  return watch
}

/** Tells nobody. */
const alone: WriteAnnouncer = {
  begin: async () => ({ kind: 'begun', write: '' }),
  spread: async () => ({ entries: 0, unheard: false }),
}

/** What it changes may be stored, here or through another service of the same upstream. */
const concernsStored = (service: Service): boolean =>
  service.storesAnswers || service.sharing().some(({ storesAnswers }) => storesAnswers)

/** Who knows that it is cut off looks for the store several times a second. */
const unheard = (): GatewayError =>
  new GatewayError('shared_store_unreachable', { retryAfterSeconds: 1, unsent: true })

/** Sends a write on; what it may have changed is gone, here and wherever else it is stored, before its answer leaves. */
export const writeThrough = (room: CacheRoom, exchange: Ready, next: Next<Outgoing>): Promise<Outcome> => {
  const { begin, spread } = room.others ?? alone
  const { service } = exchange
  // What is written through another service of the same upstream disturbs it as well.
  const running = watchOf(room.cache).begin([service.name, ...service.sharing().map(({ name }) => name)])
  let name: string | undefined
  const ended = (error: unknown): never => {
    running.end()
    throw error
  }
  /** Here at once, and then wherever else answers are stored: to be awaited before the answer leaves. */
  const invalidate = (response: GatewayResponse | undefined): Promise<unknown> | undefined => {
    const notes = writeNotes(exchange, response, running.alone() ? room.cache.contentsWithTag : undefined)
    running.end()
    invalidateWrite(room.cache, exchange, notes)
    return room.others === undefined ? undefined : spread(notes, name)
  }
  /** Sent or not, nobody knows: what it may have changed is no longer served. */
  const unlessKnown = async <Value>(known: () => Promise<Value>): Promise<Value> => {
    try {
      return await known()
    } catch (error) {
      if (!wasIncomplete(error)) await invalidate(undefined)
      else running.end()
      if (wasIncomplete(error) && name !== undefined) await spread([], name)
      throw error
    }
  }
  const written = maybeKept(room, exchange)
  const settled = async (): Promise<Outcome> => {
    if (room.others !== undefined) {
      const begun = await begin(writeNotes(exchange, undefined), concernsStored(service)).catch(ended)
      if (begun.kind === 'refused') return ended(unheard())
      name = begun.write
    }
    const outcome = await unlessKnown(async () => {
      const first = await next(lasting(exchange))
      return first.kind === 'response'
        ? completed(first, exchange.service.bodyBytes, room.budget('write-answer', exchange.client.address))
        : first
    })
    if (outcome.kind === 'response') {
      await invalidate(outcome)
      return outcome
    }
    return {
      ...outcome,
      shape: async (head) => {
        const shaped = await unlessKnown(async () => outcome.shape(head))
        const keeps = written !== undefined && showsOwnTarget(exchange, shaped) && written.isStorable(shaped)
        // Before the client sees the first byte; the content behind is not read, so the row and the path decide.
        const told = invalidate({
          kind: 'response',
          status: head.status,
          fields: head.fields,
          content: undefined,
        })
        // Begun now: what another write invalidates while this one waits must count.
        const kept = keeps ? keepingContent(written, shaped) : shaped
        await told
        return kept
      },
      failed: (cause) => unlessKnown(async () => outcome.failed(cause)),
    }
  }
  return settled()
}
