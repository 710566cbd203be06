import { createFairTurns } from '../bounds/fair-turns.ts'

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
const maxTurnMs = 5

/** One piece of work in each turn of the event loop, which the process has one of; the clients take turns. */
const turns = createFairTurns(1)

const waitFor = (client: string): Promise<void> => new Promise((resolve) => turns.wait(client, resolve))

/** Runs pieces until this turn has had its time; undefined while more is left. */
const runTurn = <Result>(work: Pieces<Result>): { readonly result: Result } | undefined => {
  const beganMs = performance.now()
  for (;;) {
    const step = work.next()
    if (step.done === true) return { result: step.value }
    if (performance.now() - beganMs >= maxTurnMs) return undefined
  }
}

/** Runs the pieces in as many later turns as they take. `client`: the address for which the work is done. */
export const inTurns = async <Result>(work: Pieces<Result>, client: string): Promise<Result> => {
  for (;;) {
    await waitFor(client)
    const end = runTurn(work)
    if (end !== undefined) return end.result
  }
}

/** Begins in this turn; only what does not fit goes on in later ones. */
export const nowOrInTurns = <Result>(work: Pieces<Result>, client: string): Result | Promise<Result> => {
  const end = runTurn(work)
  return end === undefined ? inTurns(work, client) : end.result
}

/** Ends this turn of the event loop: the next step has one of its own. */
export const nextTurn = (): Promise<void> => waitFor('')
