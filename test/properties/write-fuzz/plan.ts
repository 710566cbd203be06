import { oneOf, type Random } from '../../support/random.ts'

// What becomes of one write. The client and the upstream of a lane act out the same plan.

export const services = ['open', 'site', 'openapi'] as const
export type ServiceName = (typeof services)[number]

/** How the upstream ends its response; but for `whole` and `stream` it breaks off, or says nothing of the write. */
const endings = [
  'whole',
  'stream',
  'cut in the stream',
  'silent in the stream',
  'short',
  'cut before the head',
  'silent',
  'gateway error',
] as const
export type Ending = (typeof endings)[number]

/** When its client leaves. */
const leavings = ['before the response', 'in the response'] as const

export type WritePlan = {
  readonly service: ServiceName
  /** How the content is sent; of a `partial` one the end is never sent. */
  readonly body: 'whole' | 'pieces' | 'partial'
  readonly ending: Ending
  /** Pieces of a streaming response; each comes after a change of its own. */
  readonly pieces: number
  readonly endsLines: boolean
  /** Does the program change once more after the last piece, before the end? */
  readonly changesAtEnd: boolean
  /** How long the program takes for each change. */
  readonly changeMs: number
  /** It changes only after its response has broken off; by then the gateway knows. */
  readonly isLate: boolean
  readonly leaves: (typeof leavings)[number] | undefined
  /** Until it leaves. */
  readonly leavesAfterMs: number
  /** What happens to the gateway meanwhile. */
  readonly event: 'reload' | 'kill' | 'drain' | undefined
}

/** Longest time of one change: all of a write are over before `timeouts.total`, for which the gateway holds back after a break. */
const maxChangeMs = 120

const eventOf = (random: Random, events: boolean): WritePlan['event'] => {
  const chance = random()
  if (!events) return chance < 0.02 ? 'reload' : undefined
  return chance < 0.01 ? 'kill' : chance < 0.015 ? 'drain' : chance < 0.04 ? 'reload' : undefined
}

/** `events`: does this lane also kill and drain? One lane does for all. */
export const writePlanOf = (random: Random, events: boolean): WritePlan => {
  const isCalm = random() < 0.4
  const ending = isCalm ? oneOf(random, ['whole', 'stream'] as const) : oneOf(random, endings)
  return {
    service: oneOf(random, services),
    body: oneOf(random, isCalm ? (['whole', 'pieces'] as const) : (['whole', 'pieces', 'partial'] as const)),
    ending,
    pieces: 1 + Math.floor(random() * 5),
    endsLines: random() < 0.5,
    changesAtEnd: random() < 0.5,
    changeMs: random() * (random() < 0.8 ? 15 : maxChangeMs),
    isLate: random() < 0.4,
    leaves: isCalm || random() < 0.7 ? undefined : oneOf(random, leavings),
    leavesAfterMs: random() * 40,
    event: eventOf(random, events),
  }
}
