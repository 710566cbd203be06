import { setTimeout as sleep } from 'node:timers/promises'

/** Longest time to close the parts and the admin side after the last response. */
const closingMs = 2_000

/** Waits for work that ends the gateway, but not for ever. */
export const within = async (work: Promise<unknown>): Promise<void> => {
  const timeout = new AbortController()
  await Promise.race([work, sleep(closingMs, undefined, { signal: timeout.signal }).catch(() => undefined)])
  timeout.abort()
}
