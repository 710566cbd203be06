import type { Clock } from '../clock.ts'
import type { GatewayError } from '../errors.ts'
import type { Answer, GatewayResponse, Outcome } from '../http/message.ts'
import { reshaped } from './answering.ts'
import type { PipelineEvent } from './events.ts'
import type { Matched, Outgoing, Phase, Ready, Received, Translated } from './exchange.ts'
import type { ExchangeWatch, OpenSpan, OpenSpans, SpanName } from './exchange-watch.ts'
import type { CacheRoom, ShedOptions } from './phase-options.ts'
import { answerLocally } from './phases/answer-locally.ts'
import { authorize } from './phases/authorize.ts'
import { cache } from './phases/cache.ts'
import { forward } from './phases/forward.ts'
import { match } from './phases/match.ts'
import { observe } from './phases/observe.ts'
import { preconditions } from './phases/preconditions.ts'
import { type RateLimitOptions, rateLimit } from './phases/rate-limit.ts'
import { recover } from './phases/recover.ts'
import { shed } from './phases/shed.ts'
import { stamp } from './phases/stamp.ts'
import { translate } from './phases/translate.ts'
import { validate } from './phases/validate.ts'

const ended = (span: OpenSpan, outcome: Outcome): Outcome => {
  if (outcome.kind === 'response') {
    span.end(outcome)
    return outcome
  }
  const told = <Head extends GatewayResponse>(head: Head): Head => {
    span.end(head)
    return head
  }
  return reshaped(
    outcome,
    (head) => {
      span.end(head)
      return head
    },
    told,
  )
}

const watched = (span: OpenSpan, run: () => Answer): Answer => {
  const failed = (error: unknown): never => {
    span.failed(error)
    throw error
  }
  try {
    const answer = run()
    return answer instanceof Promise
      ? answer.then((outcome) => ended(span, outcome), failed)
      : ended(span, answer)
  } catch (error) {
    return failed(error)
  }
}

/**
 * The phase with a span around it. `own`: the span is the phase's own work and ends where the rest of the way begins;
 * otherwise the rest of the way is part of it.
 */
const withSpan = <In extends Received, Out>(
  phase: Phase<In, Out>,
  name: SpanName,
  extent: 'own' | 'whole',
  open: OpenSpans | undefined,
): Phase<In, Out> =>
  open === undefined
    ? phase
    : {
        name: phase.name,
        run: (exchange, next) => {
          const span = open(exchange, name)
          if (span === undefined) return phase.run(exchange, next)
          if (extent === 'whole') return watched(span, () => phase.run(exchange, next))
          return watched(span, () =>
            phase.run(exchange, (known) => {
              span.end(undefined)
              return next(known)
            }),
          )
        },
      }

/** What the phases are built from. The rooms of a single service come with each exchange (service.ts). */
export type Rooms = {
  readonly clock: Clock
  readonly cacheRoom: CacheRoom
  readonly report: (event: PipelineEvent) => void
  readonly failed: (error: GatewayError, exchange: Received) => void
  /** Undefined: no limits, and no phase that would look for them. */
  readonly limits: RateLimitOptions | undefined
  /** Undefined: nothing is looked at, and nothing given up. */
  readonly overload: ShedOptions | undefined
  /** Undefined: nobody watches, and there is no phase that would tell them. */
  readonly watches: readonly ExchangeWatch[] | undefined
  /** Undefined: no traces are made. */
  readonly spans: OpenSpans | undefined
}

/** The order is checked by the compiler: each phase takes what the one before it knows. */
export type Way = readonly [
  Phase<Received> | undefined,
  Phase<Received>,
  Phase<Received>,
  Phase<Received, Matched>,
  Phase<Matched> | undefined,
  Phase<Matched>,
  Phase<Matched, Ready>,
  Phase<Ready>,
  Phase<Ready>,
  Phase<Ready, Outgoing>,
  Phase<Outgoing> | undefined,
  Phase<Outgoing, Translated>,
  Phase<Translated, never>,
]

/** The way of a request, outermost first. docs/request-path.md tells it in words. */
export const buildPhases = (rooms: Rooms): Way => [
  rooms.watches && observe({ clock: rooms.clock, watches: rooms.watches }), // access log and traces; not in the list without them
  stamp(rooms), //          counts the answer; request id and Via on the way out
  recover(rooms), //        whatever is thrown behind it becomes an answer in the service's shape
  match(), //               the method that is meant and the row of the route table, or 404, 405, 400
  rooms.limits && rateLimit(rooms.limits), // 429 for who has asked too often; not in the list without limits
  authorize(), //           a credential must be present where the contract says so, or 401
  withSpan(
    validate({ report: rooms.report, budget: rooms.cacheRoom.budget }),
    'validate',
    'own',
    rooms.spans,
  ), // arguments and content against the row, or 400, 413, 415; the canonical request
  preconditions(rooms), //  the client's If-None-Match and friends: 304, 412
  answerLocally(rooms.overload), //       discovery document, namespace indexes, OPTIONS; batch, whose items re-enter this list
  withSpan(cache(rooms.cacheRoom), 'cache', 'whole', rooms.spans), // fresh, stale, revalidate, miss; stores, invalidates, collapses
  rooms.overload && shed(rooms.overload), // 503 for what would need an upstream while there is too much to do
  translate(), //           public names and URLs become the upstream's, and back
  withSpan(
    forward({ clock: rooms.clock, facts: rooms.cacheRoom.forwarding, budget: rooms.cacheRoom.budget }),
    'upstream',
    'whole',
    rooms.spans,
  ), // queue, retry budget, one attempt at one target
]
