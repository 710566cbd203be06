import { currentProcess, world } from '../world.ts'
import { setTimeout as startTimer } from './globals.ts'

export const setTimeout = <Value>(
  ms: number,
  value: Value,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Value> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted === true) reject(signal.reason)
    startTimer(() => resolve(value), ms)
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

/** Other messages of the process may come first. */
export const setImmediate = (): Promise<void> =>
  new Promise((resolve) => {
    world.schedule(world.now, currentProcess(), 'turn', resolve)
  })
