import type { Clock } from '../../clock.ts'
import { type Phase, type Received, whenAnswered } from '../exchange.ts'
import type { ExchangeWatch } from '../exchange-watch.ts'

/** Outermost, for the access log and traces; only in the list when one of them is configured. */
export const observe = (options: {
  readonly clock: Clock
  readonly watches: readonly ExchangeWatch[]
}): Phase<Received> => ({
  name: 'observe',
  run: (exchange, next) => {
    const began = options.clock.monotonic()
    for (const watch of options.watches) watch.begin(exchange)
    return whenAnswered(next(exchange), (response) => {
      const durationMs = options.clock.monotonic() - began
      for (const watch of options.watches)
        watch.end(exchange, { head: response, content: response.content, durationMs })
      return response
    })
  },
})
