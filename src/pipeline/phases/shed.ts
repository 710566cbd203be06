import { GatewayError } from '../../errors.ts'
import type { Outgoing } from '../exchange.ts'
import type { Phase } from '../phase.ts'

/** Work that needs an upstream: items of a batch, reads that would be stored, and everything else. */
export type ForwardedWork = 'batch' | 'miss' | 'pass'

export type ShedOptions = {
  /** Is there room for one more piece of this work? */
  readonly admits: (work: ForwardedWork) => boolean
  readonly retryAfterSeconds: number
}

/** What is said to whom is turned away. */
export const overloaded = (
  { retryAfterSeconds }: Pick<ShedOptions, 'retryAfterSeconds'>,
  fields: readonly string[] = [],
): GatewayError => new GatewayError('overloaded', { retryAfterSeconds, fields, unsent: true })

const workOf = ({ origin, record }: Outgoing): ForwardedWork => {
  if (origin === 'batch') return 'batch'
  return record.cache === 'bypass' ? 'pass' : 'miss'
}

/** Gives work up that would wait for an upstream while the process is overloaded. Hits never come here. */
export const shed = (options: ShedOptions): Phase<Outgoing> => ({
  name: 'shed',
  run: (exchange, next) => {
    if (options.admits(workOf(exchange))) return next(exchange)
    throw overloaded(options)
  },
})
