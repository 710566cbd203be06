import { GatewayError } from '../../errors.ts'
import type { Effect } from '../../http/methods.ts'
import type { ForwardedWork, ShedOptions } from '../ports.ts'
import type { RequestContext } from '../request-context.ts'

/** Comparisons end first, with items of batches. */
const workOf = ({ origin }: RequestContext, effect: Effect): ForwardedWork => {
  if (origin !== 'client') return 'batch'
  return effect === 'read' ? 'miss' : 'pass'
}

const refuse = (work: ForwardedWork, overload: ShedOptions | undefined): void => {
  if (overload?.accepts(work) !== false) return
  throw new GatewayError('overloaded', { retryAfterSeconds: overload.retryAfterSeconds })
}

/** Throws 503 for a request that needs an upstream while the process is overloaded; hits are never refused. */
export const shed = (context: RequestContext, effect: Effect, overload: ShedOptions | undefined): void =>
  refuse(workOf(context, effect), overload)

/** The same for a whole batch. */
export const shedBatch = (overload: ShedOptions | undefined): void => refuse('batch', overload)
