import { bypassStatus, writeStatus } from '../../cache/cache-status.ts'
import { type CachingDecision, decideCaching } from '../../cache/decide-caching.ts'
import type { CacheAnswer } from '../../cache/reader-answer.ts'
import type { Answer, GatewayResponse, Outcome } from '../../http/message.ts'
import { reshaped, whenAnswered } from '../answering.ts'
import { asOutgoing, type Outgoing, type Ready } from '../exchange.ts'
import { ExchangeRead, publicPart, type ReadPartition } from '../exchange-read.ts'
import type { Next, Phase } from '../phase.ts'
import { withholding } from '../withheld-fields.ts'
import { type CacheRoom, writeThrough } from '../write-through.ts'

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

const nothing: ReadonlySet<string> = new Set()
const noFields = {}

const outgoing = (exchange: Ready): Outgoing =>
  asOutgoing(exchange, {
    extraFields: noFields,
    withheld: nothing,
    mayHandOver: exchange.origin === 'client',
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

/** A link of an admin screen that does something (trash, activate) is a GET with a nonce; the site behind may be stored by its interface. */
const actsOnOthers = ({ service }: Ready): boolean =>
  service.contract === 'open' && service.sharing().length > 0

/** Fresh, stale, validated or missed; stored, collapsed, invalidated. Reads with no rule and writes go past it, with the reason in Cache-Status. */
export const cache = (room: CacheRoom): Phase<Ready, Outgoing> => ({
  name: 'cache',
  run: (exchange, next) => {
    const { method, record, request, sensitive, policy } = exchange
    if (sensitive === 'nonce' && actsOnOthers(exchange)) {
      record.cache = 'bypass'
      return withStatus(writeThrough(room, exchange, next), bypassStatus('nonce'))
    }
    const decision = decideCaching(
      { method, fields: request.fields, hasContent: exchange.content !== undefined, sensitive },
      policy,
    )
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
