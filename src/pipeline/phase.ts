import type { Answer } from '../http/message.ts'

/** The rest of the way. A phase calls it zero times (it answers), once, again (retry) or detached (background validation). */
export type Next<Exchange> = (exchange: Exchange) => Answer

/**
 * One step of a request's way: answers, or lets the rest of the way answer and may change what comes back.
 * `In` is what must be known when it is reached, `Out` what is known after it: the compiler keeps the order.
 */
export type Phase<In, Out = In> = {
  readonly name: string
  run(exchange: In, next: Next<Out>): Answer
}
