import type { CacheAnswer } from '../../cache/cache-read.ts'
import { bypassStatus, writeStatus } from '../../cache/cache-status.ts'
import { type CachingDecision, decideCaching } from '../../cache/decide-caching.ts'
import { isActing, type Sensitivity } from '../../cache/sensitivity.ts'
import { conditionalFields } from '../../http/conditional/preconditions.ts'
import type { Answer } from '../../http/message.ts'
import { reshaped, whenAnswered } from '../answering.ts'
import { permitted, plainOrigin } from '../any-origin.ts'
import { asOutgoing, type Next, type Outgoing, type Phase, type Ready } from '../exchange.ts'
import type { CacheRoom } from '../phase-options.ts'
import { ExchangeRead, publicPart, type ReadPartition } from '../reads/exchange-read.ts'
import { writeThrough } from '../writes/forward-write.ts'

const besides = (...names: readonly string[]): ReadonlySet<string> =>
  new Set([...conditionalFields, ...names])

/**
 * Fields of a client that a read through the cache does not send on: its preconditions, the cookies that no server reads, and
 * Origin where the gateway itself says which origins may read, or where all may.
 */
const withholding = {
  asAsked: { nothing: besides(), cookie: besides('cookie') },
  withoutOrigin: { nothing: besides('origin'), cookie: besides('cookie', 'origin') },
} as const

const withStatus = (answer: Answer, status: string): Answer =>
  whenAnswered(answer, (outcome) => {
    const marked = <Head extends { readonly fields: readonly string[] }>(head: Head): Head => ({
      ...head,
      fields: [...head.fields, 'Cache-Status', status],
    })
    return outcome.kind === 'response' ? marked(outcome) : reshaped(outcome, marked, marked)
  })

const nothing: ReadonlySet<string> = new Set()
const noFields = {}

const outgoing = (exchange: Ready): Outgoing =>
  asOutgoing(exchange, {
    extraFields: noFields,
    withheld: nothing,
    mayHandOver: exchange.origin === 'client',
    background: false,
    signal: exchange.request.signal,
  })

type Read = Extract<CachingDecision, { kind: 'read' }>

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

/** The Origin of an anonymous reader for whom the answer is the same as for those of all other origins. */
const sharedOrigin = ({ request: { fields }, service }: Ready, { partition }: Read): string | undefined =>
  fields['origin'] !== undefined &&
  partition === 'public' &&
  fields['authorization'] === undefined &&
  service.allowsAnyOrigin()
    ? plainOrigin(fields)
    : undefined

const forOrigin = ({ method }: Ready, origin: string | undefined, answer: CacheAnswer): CacheAnswer =>
  origin === undefined ? answer : permitted(answer, origin, method)

const readThrough = (room: CacheRoom, exchange: Ready, decision: Read, next: Next<Outgoing>): Answer => {
  const origin = room.withholdsOrigin === true ? undefined : sharedOrigin(exchange, decision)
  const lists =
    room.withholdsOrigin === true || origin !== undefined ? withholding.withoutOrigin : withholding.asAsked
  const withheld = decision.withhold.length === 0 ? lists.nothing : lists.cookie
  const read = new ExchangeRead(exchange, partitionFor(room, decision), withheld, room.forwarding)
  const answer = room.cache.answer(read, (extra) =>
    next(
      asOutgoing(exchange, {
        extraFields: extra.fields,
        withheld,
        mayHandOver: false,
        background: extra.background,
        signal: extra.signal,
      }),
    ),
  )
  if (answer instanceof Promise) {
    return answer.then((answered) => forOrigin(exchange, origin, noted(exchange, answered)))
  }
  return forOrigin(exchange, origin, noted(exchange, answer))
}

/**
 * Is a read to be treated as a write? Where a site is stored by its interface, what goes to it through an open service may
 * be a link of an admin screen that does something (trash, activate: a nonce), WordPress's own override of the method, or its
 * scheduled tasks.
 */
const actsAsWrite = ({ service }: Ready, sensitive: Sensitivity): boolean => {
  if (!isActing(sensitive)) return false
  if (service.contract === 'site') return sensitive === 'creating-read' || sensitive === 'cron'
  return service.contract === 'open' && service.sharing().length > 0
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
    if (decision.kind !== 'write' && sensitive !== undefined && actsAsWrite(exchange, sensitive)) {
      record.cache = 'bypass'
      return withStatus(writeThrough(room, exchange, next), bypassStatus(sensitive))
    }
    switch (decision.kind) {
      case 'read':
        return readThrough(room, exchange, decision, next)
      case 'write':
        record.cache = 'bypass'
        return withStatus(writeThrough(room, exchange, next), writeStatus)
      case 'bypass':
        record.cache = 'bypass'
        return withStatus(next(outgoing(exchange)), bypassStatus(decision.reason))
    }
  },
})
