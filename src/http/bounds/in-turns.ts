import { setImmediate } from 'node:timers/promises'

/** Runs all steps of work that may be long, and serves other requests between them. */
export const inTurns = async <Result>(steps: Generator<undefined, Result>): Promise<Result> => {
  let step = steps.next()
  while (step.done !== true) {
    await setImmediate()
    step = steps.next()
  }
  return step.value
}
