import { createFairTurns } from '../bounds.ts'

/** Work that may pause at each `yield`, so that a long content does not hold the event loop. */
export type Pieces<Result> = Generator<void, Result>

/** For work that is short, or that nobody waits beside. */
export const atOnce = <Result>(work: Pieces<Result>): Result => {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** A turn begins no further piece after this time. */
const longestTurnMs = 5

/** One piece of work in each turn of the event loop, which the process has one of; the clients take turns. */
const turns = createFairTurns(1)

const waitFor = (client: string): Promise<void> => new Promise((resolve) => turns.wait(client, resolve))

/** Runs the pieces in as many turns as they take. `client`: the address for which the work is done. */
export const inTurns = async <Result>(work: Pieces<Result>, client: string): Promise<Result> => {
  await waitFor(client)
  let beganMs = performance.now()
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    if (performance.now() - beganMs < longestTurnMs) continue
    await waitFor(client)
    beganMs = performance.now()
  }
}

/** Ends this turn of the event loop: the next step has one of its own. */
export const nextTurn = (): Promise<void> => waitFor('')
