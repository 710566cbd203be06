import type { Readable } from 'node:stream'
import type { Clock } from '../../clock.ts'
import type { Outcome, ResponseHead, ShapedHead } from '../../http/message.ts'
import { reshaped, whenAnswered } from '../answering.ts'
import type { Phase, Received } from '../exchange.ts'
import type { ExchangeWatch } from '../exchange-watch.ts'

/** Outermost, and only in the list when somebody watches: the access log, traces. */
export const observe = (options: {
  readonly clock: Clock
  readonly watches: readonly ExchangeWatch[]
}): Phase<Received> => ({
  name: 'observe',
  run: (exchange, next) => {
    const began = options.clock.monotonic()
    for (const watch of options.watches) watch.begin(exchange)
    const told = <Head extends ResponseHead>(head: Head, content: Buffer | Readable | undefined): Head => {
      const durationMs = options.clock.monotonic() - began
      for (const watch of options.watches) watch.end(exchange, { head, content, durationMs })
      return head
    }
    return whenAnswered(
      next(exchange),
      (outcome): Outcome =>
        outcome.kind === 'response'
          ? told(outcome, outcome.content)
          : reshaped(
              outcome,
              (head: ShapedHead) => told(head, undefined),
              (response) => told(response, response.content),
            ),
    )
  },
})
