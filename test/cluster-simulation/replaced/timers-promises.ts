import { currentProcess, world } from '../world.ts'
import { clearTimeout, setTimeout as startTimer } from './globals.ts'

export const setTimeout = <Value>(
  ms: number,
  value: Value,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Value> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted === true) reject(signal.reason)
    const aborted = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = startTimer(() => {
      signal?.removeEventListener('abort', aborted)
      resolve(value)
    }, ms)
    signal?.addEventListener('abort', aborted, { once: true })
  })

/** Other messages of the process may come first. */
export const setImmediate = (): Promise<void> =>
  new Promise((resolve) => {
    world.schedule(world.now, currentProcess(), 'turn', resolve)
  })
