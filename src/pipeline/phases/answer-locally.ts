import type { Ready } from '../exchange.ts'
import type { Phase } from '../phase.ts'
import { overloaded, type ShedOptions } from './shed.ts'

/** Rows that the gateway answers itself: discovery document, namespace indexes, OPTIONS, and the batch, whose items re-enter the list. */
export const answerLocally = (overload: ShedOptions | undefined): Phase<Ready> => ({
  name: 'answer-locally',
  run: (exchange, next) => {
    const { matching, service } = exchange
    const { local } = service
    if (local === undefined || matching.kind === 'unlisted') return next(exchange)
    if (matching.kind === 'options') return local.options(matching.row, () => next(exchange))
    switch (matching.row.handledBy) {
      case 'discovery':
        return local.index(exchange, matching.row)
      case 'batch':
        if (overload?.admits('batch') === false) throw overloaded(overload)
        return local.batch(exchange)
      case 'upstream':
        return next(exchange)
    }
  },
})
