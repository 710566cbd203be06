import type { Clock } from '../clock.ts'
import type { GatewayResponse, Outcome } from '../http/message.ts'
import type { Moment } from './age.ts'
import type { Errand, UpstreamAnswer } from './errand.ts'

type Fields = Readonly<Record<string, string>>

/** For who adds nothing. */
export const noFields: Fields = {}

const responseOnly = (outcome: Outcome): GatewayResponse => {
  if (outcome.kind === 'response') return outcome
  throw new TypeError('a read through the cache was handed over')
}

/** Asks the upstream, and notes when: in two halves for who can spare the promise between them. */
export const createAsking = (clock: Clock) => {
  const moment = (): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })

  const send = (
    { forward, extra, background }: Errand,
    fields: Fields,
    signal: AbortSignal,
  ): Outcome | Promise<Outcome> =>
    forward({ fields: fields === noFields ? extra : { ...extra, ...fields }, signal, background })

  const answerOf = (outcome: Outcome, requested: Moment): UpstreamAnswer => ({
    response: responseOnly(outcome),
    times: { requested, received: moment() },
  })

  const ask = async (errand: Errand, fields: Fields, signal: AbortSignal): Promise<UpstreamAnswer> => {
    const requested = moment()
    return answerOf(await send(errand, fields, signal), requested)
  }

  return { moment, send, answerOf, ask }
}
