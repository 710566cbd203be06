import type { Answer } from '../http/message.ts'
import type { Next, Phase, Received } from './exchange.ts'
import type { Way } from './phases.ts'

/** The way as one function. Built once: an exchange allocates nothing for it. */
export const createPipeline = (way: Way): ((exchange: Received) => Answer) => {
  const end: Next<never> = () => {
    throw new TypeError('the last phase has nothing behind it')
  }
  // What a phase takes is what the one before it gives, which `Way` has checked.
  const phases = way.filter((phase) => phase !== undefined) as readonly unknown[] as readonly Phase<never>[]
  return phases.reduceRight<Next<never>>(
    (next, phase) => (exchange) => phase.run(exchange, next),
    end,
  ) as unknown as Next<Received>
}
