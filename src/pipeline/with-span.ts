import type { Answer, GatewayResponse, Outcome } from '../http/message.ts'
import { reshaped } from './answering.ts'
import type { Received } from './exchange.ts'
import type { OpenSpan, OpenSpans, SpanName } from './exchange-watch.ts'
import type { Phase } from './phase.ts'

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
export const withSpan = <In extends Received, Out>(
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
