/** Why a request got no slot. */
type SlotRefusal = 'full' | 'timeout'

type Waiter = {
  readonly flow: string
  readonly granted: () => void
  readonly refused: (why: SlotRefusal) => void
  readonly timer: NodeJS.Timeout | undefined
}

/** Bounded concurrency with a bounded queue: who waits is served in turn by flow, and first come first served within a flow. */
export type Slots = {
  /** Takes a slot if one is free. Nobody waits then: a slot that is given back goes to who waits. */
  take(): boolean
  /**
   * Calls `granted` at once when a slot is free, else later; exactly one of `granted` and `refused` is called, unless
   * the returned function is called first, which leaves the queue.
   */
  acquire(flow: string, granted: () => void, refused: (why: SlotRefusal) => void): () => void
  release(): void
  readonly inFlight: number
  readonly queued: number
}

/** Slots for `max` requests in flight and `queueMax` waiting at most `queueTimeoutMs` (0 = as long as the caller waits). */
export const createSlots = (options: { max: number; queueMax: number; queueTimeoutMs: number }): Slots => {
  let inFlight = 0
  let queued = 0
  // A Map keeps insertion order: the first flow is the next one to be served, and goes to the end afterwards.
  const flows = new Map<string, Waiter[]>()

  const leave = (waiter: Waiter): boolean => {
    const line = flows.get(waiter.flow)
    const at = line?.indexOf(waiter) ?? -1
    if (line === undefined || at === -1) return false
    line.splice(at, 1)
    if (line.length === 0) flows.delete(waiter.flow)
    queued -= 1
    clearTimeout(waiter.timer)
    return true
  }

  const next = (): Waiter | undefined => {
    for (const [flow, line] of flows) {
      const waiter = line[0]
      if (waiter === undefined) continue
      leave(waiter)
      if (line.length > 0) {
        flows.delete(flow)
        flows.set(flow, line)
      }
      return waiter
    }
    return undefined
  }

  const enqueue = (flow: string, granted: () => void, refused: (why: SlotRefusal) => void): (() => void) => {
    const expire = () => {
      if (leave(waiter)) refused('timeout')
    }
    const timer = options.queueTimeoutMs > 0 ? setTimeout(expire, options.queueTimeoutMs) : undefined
    const waiter: Waiter = { flow, granted, refused, timer }
    const line = flows.get(flow)
    if (line === undefined) flows.set(flow, [waiter])
    else line.push(waiter)
    queued += 1
    return () => {
      leave(waiter)
    }
  }

  const take = (): boolean => {
    if (inFlight >= options.max) return false
    inFlight += 1
    return true
  }

  return {
    take,
    acquire(flow, granted, refused) {
      if (take()) {
        granted()
        return () => {}
      }
      if (queued < options.queueMax) return enqueue(flow, granted, refused)
      refused('full')
      return () => {}
    },
    release() {
      const waiter = next()
      if (waiter === undefined) inFlight -= 1
      else waiter.granted()
    },
    get inFlight() {
      return inFlight
    },
    get queued() {
      return queued
    },
  }
}
