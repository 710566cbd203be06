import type { Ready } from '../exchange.ts'
import type { Phase } from '../phase.ts'

/** Rows that the gateway answers itself: discovery document, namespace indexes, OPTIONS, and the batch, whose items re-enter the list. */
export const answerLocally = (): Phase<Ready> => ({
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
        return local.batch(exchange)
      case 'upstream':
        return next(exchange)
    }
  },
})
