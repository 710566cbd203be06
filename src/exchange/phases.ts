import type { Clock } from '../clock.ts'
import type { GatewayError } from '../errors.ts'
import type { Answer, GatewayResponse } from '../http/message.ts'
import type { ExchangeEvent, PipelineEvent } from './events.ts'
import type { Matched, Next, Outgoing, Phase, Ready, Received, Translated } from './exchange.ts'
import { authenticate, authorize, type RateLimitOptions, rateLimit, shed } from './phases/admit.ts'
import { cache } from './phases/cache.ts'
import { forward, translate } from './phases/forward.ts'
import { answerLocally, match, validate } from './phases/request.ts'
import {
  type CompressOptions,
  compress,
  observe,
  permit,
  preconditions,
  recover,
  stamp,
} from './phases/response.ts'
import type { CacheContext, ExchangeWatch, OpenSpan, OpenSpans, ShedOptions, SpanName } from './ports.ts'

const watched = (span: OpenSpan, run: () => Answer): Answer => {
  const ended = (response: GatewayResponse): GatewayResponse => {
    span.end(response)
    return response
  }
  const failed = (error: unknown): never => {
    span.failed(error)
    throw error
  }
  try {
    const answer = run()
    if (answer instanceof Promise) return answer.then(ended, failed)
    return ended(answer)
  } catch (error) {
    return failed(error)
  }
}

/** The phase with a span around it. `own`: the span ends where the next phase begins; `whole`: it contains the phases behind. */
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

/** The context of the phases. The facts of one service are in each exchange (service.ts). */
export type PhaseContext = {
  readonly clock: Clock
  readonly cacheContext: CacheContext
  /** For each exchange once; `report` gets all other events. */
  readonly finished: (event: ExchangeEvent) => void
  readonly report: (event: PipelineEvent) => void
  readonly failed: (error: GatewayError, exchange: Received) => void
  /** Some service has `access`; otherwise `authenticate` is disabled. */
  readonly checksAccess: boolean
  readonly limits: RateLimitOptions | undefined
  readonly compression: CompressOptions | undefined
  readonly overload: ShedOptions | undefined
  readonly watches: readonly ExchangeWatch[] | undefined
  readonly spans: OpenSpans | undefined
}

/** The compiler checks the order: each phase needs what those before it have added. */
type Phases = readonly [
  Phase<Received> | undefined,
  Phase<Received>,
  Phase<Received>,
  Phase<Received>,
  Phase<Received> | undefined,
  Phase<Received, Matched>,
  Phase<Matched> | undefined,
  Phase<Matched>,
  Phase<Matched, Ready>,
  Phase<Ready>,
  Phase<Ready> | undefined,
  Phase<Ready>,
  Phase<Ready, Outgoing>,
  Phase<Outgoing> | undefined,
  Phase<Outgoing, Translated>,
  Phase<Translated, never>,
]

/** The phases of a request, outermost first; docs/request-path.md describes them. */
export const buildPhases = (context: PhaseContext): Phases => [
  context.watches && observe({ clock: context.clock, watches: context.watches }), // access log and traces; not in the list without them
  stamp({ clock: context.clock, report: context.finished }), // counts the answer; request id and Via on the way out
  permit(), //              the CORS fields of a site on what the gateway answers itself
  recover(context), //        an error of the phases behind it becomes a response in the service's format
  context.checksAccess ? authenticate(context) : undefined, // 401 and 403 by address and credential; not in the list without `access`
  match(), //               the method and the row of the route table, or 404, 405, 400
  context.limits && rateLimit(context.limits), // 429 for clients over the limit; not in the list without limits
  authorize(context), //    a credential where the contract requires one, or `access` requires one of writes, or 401
  withSpan(
    validate({ report: context.report, budget: context.cacheContext.budget }),
    'validate',
    'own',
    context.spans,
  ), // arguments and content against the row, or 400, 413, 415; the canonical request
  preconditions(context), //  the client's preconditions: 304, 412
  context.compression && compress(context.compression), // what is sent uncompressed to a client that accepts a coding; not hits
  answerLocally(context.overload), //       discovery document, namespace indexes, OPTIONS; batch, whose items go through this list
  withSpan(cache(context.cacheContext), 'cache', 'whole', context.spans), // fresh, stale, revalidate, miss; stores, invalidates, collapses
  context.overload && shed(context.overload), // 503 for requests that need an upstream while the process is overloaded
  translate(), //           public names and URLs become the upstream's, and back
  withSpan(
    forward({
      facts: context.cacheContext.forwarding,
      budget: context.cacheContext.budget,
    }),
    'upstream',
    'whole',
    context.spans,
  ), // queue, breaker, retries, attempts
]

/** The phases as one function. Built once: an exchange allocates nothing for it. */
export const createPipeline = (list: Phases): ((exchange: Received) => Answer) => {
  const end: Next<never> = () => {
    throw new TypeError('the last phase has nothing behind it')
  }
  // Each phase takes what the one before it gives, which `Phases` has checked.
  const phases = list.filter((phase) => phase !== undefined) as readonly unknown[] as readonly Phase<never>[]
  return phases.reduceRight<Next<never>>(
    (next, phase) => (exchange) => phase.run(exchange, next),
    end,
  ) as unknown as Next<Received>
}
