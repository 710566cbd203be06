import { currentProcess, world } from '../world.ts'
import { setTimeout as startTimer } from './globals.ts'

export const setTimeout = <Value>(ms: number, value: Value): Promise<Value> =>
  new Promise((resolve) => {
    startTimer(() => resolve(value), ms)
  })

/** Other messages of the process may come first. */
export const setImmediate = (): Promise<void> =>
  new Promise((resolve) => {
    world.schedule(world.now, currentProcess(), 'turn', resolve)
  })
