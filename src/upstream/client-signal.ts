import type { Interim } from '../http/message.ts'

/**
 * Under this key of a request's fields an AbortSignal may travel to the dispatcher: @fastify/reply-from hands on nothing
 * but fields, and it copies symbols, which are never sent. When it is aborted the request to the upstream ends too.
 */
export const clientSignal: unique symbol = Symbol('client-signal')

/** As `clientSignal`: who wants to hear of interim responses. */
export const clientInterim: unique symbol = Symbol('client-interim')

/** The listener that came with the fields of a request. */
export const interimOf = (fields: unknown): Interim | undefined => {
  if (typeof fields !== 'object' || fields === null || !(clientInterim in fields)) return undefined
  const interim = fields[clientInterim]
  return typeof interim === 'function' ? (interim as Interim) : undefined
}

/** The signal that came with the fields of a request. */
export const signalOf = (fields: unknown): AbortSignal | undefined => {
  if (typeof fields !== 'object' || fields === null || !(clientSignal in fields)) return undefined
  const signal = fields[clientSignal]
  return typeof signal === 'object' && signal !== null && 'aborted' in signal
    ? (signal as AbortSignal)
    : undefined
}
