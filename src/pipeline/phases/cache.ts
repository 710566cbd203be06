import type { CacheAnswer } from '../../cache/cache-read.ts'
import { actsAsWrite, type CachingDecision, decideCaching } from '../../cache/decide-caching.ts'
import { bypassStatus, writeStatus } from '../../cache/events.ts'
import { conditionalFields } from '../../http/conditional/preconditions.ts'
import type { Answer } from '../../http/message.ts'
import { permitted, plainOrigin } from '../any-origin.ts'
import { asOutgoing, type Next, type Outgoing, type Phase, type Ready, whenAnswered } from '../exchange.ts'
import type { CacheContext } from '../phase-options.ts'
import {
  codingsToPass,
  codingsToStore,
  ExchangeRead,
  hasTagCondition,
  ownConditions,
  publicPart,
  type ReadPartition,
  tagConditions,
} from '../reads.ts'
import { forwardWrite } from '../writes/forward-write.ts'

const besides = (...names: readonly string[]): ReadonlySet<string> =>
  new Set([...conditionalFields, ...names])

/**
 * Request fields that a read through the cache does not forward: preconditions, cookies that no server reads, and Origin where the
 * gateway itself allows origins, or where all are allowed.
 */
const withholding = {
  asAsked: { nothing: besides(), cookie: besides('cookie') },
  withoutOrigin: { nothing: besides('origin'), cookie: besides('cookie', 'origin') },
} as const

const withStatus = (answer: Answer, status: string): Answer =>
  whenAnswered(answer, (response) => ({
    ...response,
    fields: [...response.fields, 'Cache-Status', status],
  }))

const nothing: ReadonlySet<string> = new Set()
const noFields = {}

/** Passes the response on as it comes: with a condition that names a form made here, the tag of the upstream is sent too. */
const outgoing = (exchange: Ready): Outgoing => {
  const { request } = exchange
  const isConditioned = hasTagCondition(request.fields)
  return asOutgoing(exchange, {
    extraFields: isConditioned ? ownConditions(request.fields) : noFields,
    withheld: isConditioned ? tagConditions : nothing,
    acceptEncoding: codingsToPass(exchange),
    background: false,
    signal: exchange.request.signal,
  })
}

type Read = Extract<CachingDecision, { kind: 'read' }>

/** The partition of the credential and the declared fields, or the one that all share. */
const partitionFor = (context: CacheContext, decision: Read, variant: Ready['variant']): ReadPartition => {
  const credential = decision.partition === 'public' ? undefined : decision.credential
  if (variant !== undefined) {
    const name = context.partitionOf(JSON.stringify([variant.key, credential ?? null]))
    return { kind: decision.partition, name }
  }
  return credential === undefined ? publicPart : { kind: 'credential', name: context.partitionOf(credential) }
}

/** Of the cookies only the declared ones are sent: the key contains no others. */
const withDeclaredCookies = (
  fields: Readonly<Record<string, string>>,
  { variant }: Ready,
  withheld: ReadonlySet<string>,
): Readonly<Record<string, string>> =>
  variant?.cookie === undefined || !withheld.has('cookie') ? fields : { ...fields, cookie: variant.cookie }

const recorded = (exchange: Ready, answer: CacheAnswer): CacheAnswer => {
  const { record } = exchange
  record.cache = answer.outcome
  if (answer.ageSeconds !== undefined) record.ageSeconds = answer.ageSeconds
  return answer
}

/** The Origin of an anonymous request whose response is the same for all origins. */
const sharedOrigin = ({ request: { fields }, service }: Ready, { partition }: Read): string | undefined =>
  fields['origin'] !== undefined &&
  partition === 'public' &&
  fields['authorization'] === undefined &&
  service.allowsAnyOrigin()
    ? plainOrigin(fields)
    : undefined

const forOrigin = ({ method }: Ready, origin: string | undefined, answer: CacheAnswer): CacheAnswer =>
  origin === undefined ? answer : permitted(answer, origin, method)

const readThrough = (
  context: CacheContext,
  exchange: Ready,
  decision: Read,
  next: Next<Outgoing>,
): Answer => {
  const origin = context.withholdsOrigin === true ? undefined : sharedOrigin(exchange, decision)
  const lists =
    context.withholdsOrigin === true || origin !== undefined ? withholding.withoutOrigin : withholding.asAsked
  const withheld = decision.withhold.length === 0 ? lists.nothing : lists.cookie
  const read = new ExchangeRead(
    exchange,
    partitionFor(context, decision, exchange.variant),
    withheld,
    context.forwarding,
  )
  const answer = context.cache.answer(read, (extra) =>
    next(
      asOutgoing(exchange, {
        extraFields: withDeclaredCookies(extra.fields, exchange, withheld),
        withheld,
        acceptEncoding: codingsToStore(exchange, extra.fields),
        background: extra.background,
        signal: extra.signal,
      }),
    ),
  )
  if (answer instanceof Promise) {
    return answer.then((answered) => forOrigin(exchange, origin, recorded(exchange, answered)))
  }
  return forOrigin(exchange, origin, recorded(exchange, answer))
}

/** Is a read treated as a write? Through an open service only where a service of another contract has the same upstream. */
const isWrite = ({ service, sensitive }: Ready): boolean =>
  actsAsWrite(service.contract, sensitive) &&
  [service, ...service.sharing()].some(({ contract }) => contract !== 'open')

/** Reads are answered from the cache or stored in it; writes invalidate. Writes and reads without a rule bypass it, with the reason in Cache-Status. */
export const cache = (context: CacheContext): Phase<Ready, Outgoing> => ({
  name: 'cache',
  run: (exchange, next) => {
    const { method, record, request, sensitive, policy, identity } = exchange
    const { fields } = request
    const decision = decideCaching(
      { method, fields, hasContent: exchange.content !== undefined, sensitive, identity },
      policy,
    )
    if (decision.kind !== 'write' && sensitive !== undefined && isWrite(exchange)) {
      record.cache = 'bypass'
      return withStatus(forwardWrite(context, exchange, next), bypassStatus(sensitive))
    }
    // A WebSocket is no response, and is for one client. An upstream without WebSockets still carries out a write.
    if (request.upgrade !== undefined && decision.kind !== 'write') {
      record.cache = 'bypass'
      return next(outgoing(exchange))
    }
    switch (decision.kind) {
      case 'read':
        return readThrough(context, exchange, decision, next)
      case 'write':
        record.cache = 'bypass'
        return withStatus(forwardWrite(context, exchange, next), writeStatus)
      case 'bypass':
        record.cache = 'bypass'
        return withStatus(next(outgoing(exchange)), bypassStatus(decision.reason))
    }
  },
})
