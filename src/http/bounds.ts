import { isIP } from 'node:net'

/** The eight groups of an IPv6 address, `::` written out; an embedded IPv4 address counts as two. */
const groupsOf = (address: string): readonly string[] => {
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::')
  const parts = (text: string): string[] =>
    text === '' ? [] : text.split(':').flatMap((part) => (part.includes('.') ? ['v', '4'] : [part]))
  const leading = parts(head)
  if (tail === undefined) return leading
  const right = parts(tail)
  return [
    ...leading,
    ...Array.from({ length: Math.max(0, 8 - leading.length - right.length) }, () => '0'),
    ...right,
  ]
}

const mappedForm = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i

/** The first groups of an IPv6 address, without leading zeros. */
const firstGroups = (address: string, count: number): string =>
  groupsOf(address)
    .slice(0, count)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')

/** The network of an address, for logs: /24 of IPv4, /48 of IPv6. Others share it, so that it names no person. */
export const addressNetwork = (address: string): string => {
  const ipv4 = mappedForm.exec(address)?.[1] ?? address
  if (isIP(ipv4) === 4) return `${ipv4.slice(0, ipv4.lastIndexOf('.'))}.0/24`
  return isIP(address) === 6 ? `${firstGroups(address, 3)}::/48` : 'unknown'
}

/**
 * The addresses that limits count as one client: an IPv4 address, or the /64 of an IPv6 address, since a single host gets a whole
 * /64 to take addresses from (RFC 6177 §2).
 */
export const addressGroup = (address: string): string => {
  if (isIP(address) !== 6) return address
  return mappedForm.exec(address)?.[1] ?? `${firstGroups(address, 4)}::/64`
}

/** Reasons to buffer bytes; also a metric label. */
export const bufferedWork = [
  /** A response that is being stored, or read whole before it is judged. */
  'fill',
  /** A request body that is read whole. */
  'request-body',
  'batch-item',
  /** The response to a write, which shows what the write changed. */
  'write-answer',
  /** A response that its client has not read yet. */
  'slow-reader',
] as const
export type BufferedFor = (typeof bufferedWork)[number]

/** The bytes that one piece of work has buffered. */
export type Reservation = {
  /** False: the budget is used up, and nothing was reserved. */
  reserve(bytes: number): boolean
  /** Gives some of them back. */
  shrink(bytes: number): void
  /** Gives back all that are left, and takes no more: to be called at every end that the work can have. */
  release(): void
}

/** One bound over all that a process buffers and that is no stored response; `client`: address for which the work is done. */
export type ByteBudget = (work: BufferedFor, client: string) => Reservation

/** Of each chunk, beside its octets: objects, and the block that it was read into. A peer decides how many chunks it makes of a content. */
export const overheadOfChunk = 512

/** For content with its own bound. */
export const unlimited: Reservation = { reserve: () => true, shrink: () => {}, release: () => {} }

type Waiting = { readonly work: () => void; next: Waiting | undefined }
/** Linked, because taking the first element of an array with tens of thousands of them copies the others. */
type Queue = { readonly first: Waiting; last: Waiting }

/**
 * Node processes everything that has arrived within one turn of the event loop, in order of arrival, so a client with a thousand
 * pieces of work would delay all others. Here each turn starts only `perTurn` pieces, one for each client in rotation. While every
 * turn brings new work, none starts for `gatherMs`, so that the clients are known before the order is chosen. Time and not turns:
 * those of a busy process are long, and 32 of them kept new clients waiting for seconds.
 */
export const createFairTurns = (perTurn: number, gatherMs = 0) => {
  // A Map keeps insertion order: the first client is served next and moves to the end.
  const queues = new Map<string, Queue>()
  let startedThisTurn = 0
  /** When the gathering began; infinite when it has not. */
  let gathersSinceMs = Number.POSITIVE_INFINITY
  let isTurnScheduled = false
  let hasNewWork = false
  let hadNewWork = false

  const scheduleTurn = (): void => {
    if (isTurnScheduled) return
    isTurnScheduled = true
    setImmediate(runTurn)
  }
  const startNext = (client: string, { first, last }: Queue): void => {
    queues.delete(client)
    if (first.next !== undefined) queues.set(client, { first: first.next, last })
    startedThisTurn += 1
    first.work()
  }
  const runTurn = (): void => {
    isTurnScheduled = false
    startedThisTurn = 0
    hadNewWork = hasNewWork
    hasNewWork = false
    if (hadNewWork || queues.size > 0) scheduleTurn()
    if (hadNewWork && gatherMs > 0) {
      const nowMs = performance.now()
      gathersSinceMs = Math.min(gathersSinceMs, nowMs)
      if (nowMs - gathersSinceMs < gatherMs) return
    }
    gathersSinceMs = Number.POSITIVE_INFINITY
    for (const [client, queue] of queues) {
      if (startedThisTurn >= perTurn) return
      startNext(client, queue)
    }
  }
  /** Counts a piece of work that begins now, if no other waits and this turn has capacity. */
  const mayBegin = (): boolean => {
    hasNewWork = true
    scheduleTurn()
    if (queues.size > 0 || startedThisTurn >= perTurn || (hadNewWork && gatherMs > 0)) return false
    startedThisTurn += 1
    return true
  }

  /** Runs `work` in a later turn. */
  const wait = (client: string, work: () => void): void => {
    hasNewWork = true
    scheduleTurn()
    const added: Waiting = { work, next: undefined }
    const queue = queues.get(client)
    if (queue === undefined) queues.set(client, { first: added, last: added })
    else {
      queue.last.next = added
      queue.last = added
    }
  }
  return {
    /** For work that costs nothing unless it has to wait: after `false`, `begin` makes it wait. */
    mayBegin,
    /** Runs `work` at once if `mayBegin`; otherwise in a later turn. */
    begin: (client: string, work: () => void): void => {
      if (mayBegin()) work()
      else wait(client, work)
    },
    wait,
  }
}

export type FairTurns = ReturnType<typeof createFairTurns>

/** Adds to one of several counts; a count of 0 is removed, so that the map does not grow. */
export const addCount = (counts: Map<string, number>, key: string, by: number): void => {
  const next = (counts.get(key) ?? 0) + by
  if (next === 0) counts.delete(key)
  else counts.set(key, next)
}

/** `index`: its position in the list, -1 if it is in none. */
type Listed = { index: number }

/** Requests that come and go. A list in place of a Set, whose tables would keep old requests alive: docs/decisions/0013. */
export class OpenList<One extends Listed> {
  readonly #all: One[] = []

  get size(): number {
    return this.#all.length
  }

  /** Unordered; the next call changes it. */
  get all(): readonly One[] {
    return this.#all
  }

  add(item: One): void {
    item.index = this.#all.length
    this.#all.push(item)
  }

  /** The last one moves to the free position. */
  remove(item: One): void {
    const { index } = item
    if (index === -1) return
    item.index = -1
    const last = this.#all.pop()
    if (last === undefined || last === item) return
    this.#all[index] = last
    last.index = index
  }
}
