import type { Outgoing, Phase } from '../exchange.ts'
import { type ForwardedWork, overloaded, type ShedOptions } from '../phase-options.ts'

const workOf = ({ origin, record }: Outgoing): ForwardedWork => {
  if (origin === 'batch') return 'batch'
  return record.cache === 'bypass' ? 'pass' : 'miss'
}

/** Refuses requests that need an upstream while the process is overloaded; hits are never refused. */
export const shed = (options: ShedOptions): Phase<Outgoing> => ({
  name: 'shed',
  run: (exchange, next) => {
    if (options.admits(workOf(exchange))) return next(exchange)
    throw overloaded(options)
  },
})
