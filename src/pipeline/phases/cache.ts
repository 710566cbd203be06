import type { Cache } from '../../cache/cache.ts'
import { cacheKey } from '../../cache/cache-key.ts'
import { bypassStatus, writeStatus } from '../../cache/cache-status.ts'
import { type CachingDecision, decideCaching } from '../../cache/decide-caching.ts'
import type { CachePolicy } from '../../cache/policy.ts'
import type { CacheAnswer } from '../../cache/reader-answer.ts'
import type { Answer, GatewayResponse, Outcome } from '../../http/message.ts'
import { conditionalFields } from '../../http/preconditions.ts'
import { reshaped, whenAnswered } from '../answering.ts'
import type { Outgoing, Ready } from '../exchange.ts'
import { completed, invalidateWrite } from '../invalidate-write.ts'
import type { Next, Phase } from '../phase.ts'

export type CacheRoom = {
  readonly cache: Cache
  /** Salted hash of a credential; see cache/cache-key.ts. */
  readonly partitionOf: (credential: string) => string
}

const nothing: ReadonlySet<string> = new Set()

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

const outgoing = (exchange: Ready): Outgoing => ({
  ...exchange,
  extraFields: {},
  withheld: nothing,
  mayHandOver: exchange.origin === 'client',
  signal: exchange.request.signal,
})

type Read = Extract<CachingDecision, { kind: 'read' }>

const readThrough = (
  room: CacheRoom,
  exchange: Ready,
  decision: Read,
  policy: CachePolicy,
  next: Next<Outgoing>,
): Answer => {
  const { service, target, record, matching, request } = exchange
  const partition = decision.partition === 'public' ? 'public' : room.partitionOf(decision.credential)
  const withheld = new Set([...conditionalFields, ...decision.withhold])
  const answer = room.cache.answer(
    {
      service: service.name,
      key: cacheKey({ service: service.name, target, dialect: '', partition }),
      partition: decision.partition,
      method: exchange.method === 'HEAD' ? 'HEAD' : 'GET',
      fields: request.fields,
      policy,
      tags: (response) =>
        service.tagger.storedTags(
          matching.kind === 'found' ? matching : undefined,
          exchange.arguments,
          response,
        ),
      get signal() {
        return request.signal
      },
    },
    async (extra) =>
      responseOnly(
        await next({
          ...exchange,
          extraFields: extra.fields,
          withheld,
          mayHandOver: false,
          signal: extra.signal,
        }),
      ),
  )
  const noted = (answered: CacheAnswer): CacheAnswer => {
    record.cache = answered.outcome
    return answered
  }
  return answer instanceof Promise ? answer.then(noted) : noted(answer)
}

const write = (room: CacheRoom, exchange: Ready, next: Next<Outgoing>): Answer => {
  const invalidate = (response: GatewayResponse | undefined): void =>
    invalidateWrite(room.cache, exchange, response)
  const settled = async (): Promise<Outcome> => {
    let outcome: Outcome
    try {
      outcome = await next(outgoing(exchange))
    } catch (error) {
      // Sent or not, nobody knows: what it may have changed is no longer served.
      invalidate(undefined)
      throw error
    }
    if (outcome.kind === 'response') {
      const whole = await completed(outcome, exchange.service.bodyBytes)
      invalidate(whole)
      return whole
    }
    const carried = outcome
    return {
      ...carried,
      shape: async (head) => {
        const shaped = await carried.shape(head)
        // Before the client sees the first byte; the content behind is not read, so the row and the path decide.
        invalidate({ kind: 'response', status: head.status, fields: head.fields, content: undefined })
        return shaped
      },
      failed: async (cause) => {
        invalidate(undefined)
        return carried.failed(cause)
      },
    }
  }
  return withStatus(settled(), writeStatus)
}

/** Fresh, stale, validated or missed; stored, collapsed, invalidated. Reads with no rule and writes go past it, with the reason in Cache-Status. */
export const cache = (room: CacheRoom): Phase<Ready, Outgoing> => ({
  name: 'cache',
  run: (exchange, next) => {
    const { service, method, matching, record, request, sensitive } = exchange
    const policy = service.policyFor(method, matching.path)
    const decision = decideCaching(
      { method, fields: request.fields, hasContent: exchange.content !== undefined, sensitive },
      policy,
    )
    switch (decision.kind) {
      case 'read':
        return readThrough(room, exchange, decision, policy, next)
      case 'write':
        record.cache = 'bypass'
        return write(room, exchange, next)
      case 'bypass':
        record.cache = 'bypass'
        return withStatus(next(outgoing(exchange)), bypassStatus(decision.reason))
    }
  },
})
