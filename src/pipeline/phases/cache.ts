import type { Cache } from '../../cache/cache.ts'
import { bypassStatus, writeStatus } from '../../cache/cache-status.ts'
import { type CachingDecision, decideCaching, forbidsStoring } from '../../cache/decide-caching.ts'
import type { CacheAnswer } from '../../cache/reader-answer.ts'
import type { WrittenAnswer } from '../../cache/written-answer.ts'
import type { Coherence } from '../../coherence/coherence.ts'
import { GatewayError } from '../../errors.ts'
import { withUncodedTags } from '../../http/coded-tags.ts'
import { type RequestFields, requestField } from '../../http/fields.ts'
import type { Answer, GatewayResponse, Outcome } from '../../http/message.ts'
import { conditionalFields } from '../../http/preconditions.ts'
import { reshaped, whenAnswered } from '../answering.ts'
import { asOutgoing, type Outgoing, type Ready } from '../exchange.ts'
import { ExchangeRead, type ReadPartition } from '../exchange-read.ts'
import { completed, invalidateWrite, showsOwnTarget, writeNotes } from '../invalidate-write.ts'
import { keepingContent } from '../keep-written.ts'
import type { Next, Phase } from '../phase.ts'
import { createWriteWatch, type WriteWatch } from '../write-watch.ts'

export type CacheRoom = {
  readonly cache: Cache
  /** Salted hash of a credential; see cache/cache-key.ts. */
  readonly partitionOf: (credential: string) => string
  /** Where other processes store answers of the same upstreams: writes are told to them (docs/decisions/0007). */
  readonly others?: Others
  /** Browsers are told by the gateway who may call: what is shared must not depend on who asked first. */
  readonly withholdsOrigin?: boolean
}

/** As in coherence/coherence.ts. */
type Others = Pick<Coherence, 'begin' | 'spread'>

const nothing: ReadonlySet<string> = new Set()

/** What `forward` withholds from the upstream or sends in the client's place, for each list that `decideCaching` gives. */
const shared = (withhold: readonly string[]) => {
  const withheld: ReadonlySet<string> = new Set([...conditionalFields, ...withhold])
  const settled: RequestFields = {
    'accept-encoding': 'identity',
    ...Object.fromEntries([...withheld].map((name) => [name, undefined])),
  }
  return { withheld, settled }
}
const withholdsNothing = shared([])
const withholding = {
  asAsked: { nothing: withholdsNothing, cookie: shared(['cookie']) },
  withoutOrigin: { nothing: shared(['origin']), cookie: shared(['cookie', 'origin']) },
} as const

const responseOnly = (outcome: Outcome): GatewayResponse => {
  if (outcome.kind === 'response') return outcome
  throw new TypeError('a read through the cache was handed over')
}

const withStatus = (answer: Answer, status: string): Answer =>
  whenAnswered(answer, (outcome) => {
    const marked = <Head extends { readonly fields: readonly string[] }>(head: Head): Head => ({
      ...head,
      fields: [...head.fields, 'Cache-Status', status],
    })
    return outcome.kind === 'response' ? marked(outcome) : reshaped(outcome, marked, marked)
  })

const noFields = {}

const outgoing = (exchange: Ready): Outgoing =>
  asOutgoing(exchange, {
    extraFields: noFields,
    withheld: nothing,
    mayHandOver: exchange.origin === 'client',
    signal: exchange.request.signal,
  })

type Read = Extract<CachingDecision, { kind: 'read' }>

const publicPart: ReadPartition = { kind: 'public', name: 'public' }

/** A read's own part of the cache, or the one that all share. */
const partitionFor = (room: CacheRoom, decision: Read): ReadPartition =>
  decision.partition === 'public'
    ? publicPart
    : { kind: 'credential', name: room.partitionOf(decision.credential) }

const noted = (exchange: Ready, answer: CacheAnswer): CacheAnswer => {
  const { record } = exchange
  record.cache = answer.outcome
  if (answer.ageSeconds !== undefined) record.ageSeconds = answer.ageSeconds
  return answer
}

const readThrough = (room: CacheRoom, exchange: Ready, decision: Read, next: Next<Outgoing>): Answer => {
  const lists = room.withholdsOrigin === true ? withholding.withoutOrigin : withholding.asAsked
  const { withheld, settled } = decision.withhold.length === 0 ? lists.nothing : lists.cookie
  const read = new ExchangeRead(exchange, partitionFor(room, decision), settled)
  const answer = room.cache.answer(read, async (extra) =>
    responseOnly(
      await next(
        asOutgoing(exchange, {
          extraFields: extra.fields,
          withheld,
          mayHandOver: false,
          signal: extra.signal,
        }),
      ),
    ),
  )
  return answer instanceof Promise
    ? answer.then((answered) => noted(exchange, answered))
    : noted(exchange, answer)
}

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
    withheld: nothing,
    mayHandOver: exchange.origin === 'client',
    // One of its own: what listens to it must go with the request.
    signal: new AbortController().signal,
  })

/** The upstream never got the whole request, or nothing of it, so it did not carry it out. */
const wasIncomplete = (error: unknown): boolean =>
  error instanceof GatewayError &&
  (error.unsent || error.code === 'client_gone' || error.code === 'content_too_large')

/** RFC 9110 §9.3.3 lets an answer to POST serve later reads; only the wide profile makes use of it. */
const maybeKept = ({ cache }: CacheRoom, exchange: Ready): WrittenAnswer | undefined => {
  const { method, policy, request, service } = exchange
  if (method !== 'POST' || policy.profile !== 'rfc-shared-cache' || !service.invalidatesTargets)
    return undefined
  if (forbidsStoring(request.fields)) return undefined
  return cache.written(new ExchangeRead(exchange, publicPart, withholdsNothing.settled))
}

/** Tells nobody. */
const alone: Others = { begin: async () => '', spread: async () => 0 }

const write = (room: CacheRoom, watch: WriteWatch, exchange: Ready, next: Next<Outgoing>): Answer => {
  const { begin, spread } = room.others ?? alone
  const running = watch.begin(exchange.service.name)
  let name: string | undefined
  const ended = (error: unknown): never => {
    running.end()
    throw error
  }
  /** Here at once, and then wherever else answers are stored: to be awaited before the answer leaves. */
  const invalidate = (response: GatewayResponse | undefined): Promise<unknown> | undefined => {
    const notes = writeNotes(exchange, response, running.alone() ? room.cache.shown : undefined)
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
    if (room.others !== undefined) name = await begin(writeNotes(exchange, undefined)).catch(ended)
    const outcome = await unlessKnown(async () => {
      const first = await next(lasting(exchange))
      return first.kind === 'response' ? completed(first, exchange.service.bodyBytes) : first
    })
    if (outcome.kind === 'response') {
      await invalidate(outcome)
      return outcome
    }
    return {
      ...outcome,
      shape: async (head) => {
        const shaped = await unlessKnown(async () => outcome.shape(head))
        const keeps = written !== undefined && showsOwnTarget(exchange, shaped) && written.accepts(shaped)
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
  return withStatus(settled(), writeStatus)
}

/** A cache outlives the configurations under which it is written to. */
const watches = new WeakMap<Cache, WriteWatch>()

const watchOf = (cache: Cache): WriteWatch => {
  const watch = watches.get(cache) ?? createWriteWatch()
  watches.set(cache, watch)
  return watch
}

/** Fresh, stale, validated or missed; stored, collapsed, invalidated. Reads with no rule and writes go past it, with the reason in Cache-Status. */
export const cache = (room: CacheRoom): Phase<Ready, Outgoing> => ({
  name: 'cache',
  run: (exchange, next) => {
    const { method, record, request, sensitive, policy } = exchange
    const decision = decideCaching(
      { method, fields: request.fields, hasContent: exchange.content !== undefined, sensitive },
      policy,
    )
    switch (decision.kind) {
      case 'read':
        return readThrough(room, exchange, decision, next)
      case 'write':
        record.cache = 'bypass'
        return write(room, watchOf(room.cache), exchange, next)
      case 'bypass':
        record.cache = 'bypass'
        return withStatus(next(outgoing(exchange)), bypassStatus(decision.reason))
    }
  },
})
