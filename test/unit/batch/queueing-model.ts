import { createSplitMemory, createSplitter } from '../../../src/batch/splitter.ts'

/** An upstream as far as the time of its requests depends on it. */
export type Upstream = {
  readonly cores: number
  /** Requests that it works on at once; others wait in order of arrival. */
  readonly workers: number
  /** Milliseconds of processor that a request takes, whatever is in it, and that each item takes. */
  readonly startUpMs: number
  readonly itemMs: number
  /** Share of an item's work that is done for one request at a time: a database that lets in one writer. */
  readonly locked: number
  /** Other programs that always want a processor. */
  readonly others: number
}

type Job = { free: number; locked: number; readonly done: () => void }

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
const randomOf = (seed: number) => {
  let state = seed
  return (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Requests that share processors with each other and with other programs, in their own time. */
const createModel = (upstream: () => Upstream, random: () => number) => {
  const running: Job[] = []
  const waiting: Job[] = []
  let nowMs = 0

  /** Those that can go on: of the requests that are at their locked part the first. */
  const working = (): Job[] => {
    const first = running.find(({ free }) => free <= 0)
    return running.filter((job) => job.free > 0 || job === first)
  }

  const workOn = (job: Job, ms: number): void => {
    if (job.free > 0) job.free = job.free - ms < 1e-9 ? 0 : job.free - ms
    else job.locked -= ms
  }

  return {
    now: () => nowMs,
    send(items: number, done: () => void): void {
      const { startUpMs, itemMs, locked } = upstream()
      // No two requests take the same time, and one in a hundred takes three times as long.
      const noise = (0.75 + random() * 0.5) * (random() < 0.01 ? 3 : 1)
      const ms = items * itemMs * noise
      waiting.push({ free: startUpMs * noise + ms * (1 - locked), locked: ms * locked, done })
    },
    /** Until something ends, a request or a part of one; false when there is none. */
    step(): boolean {
      const { cores, workers, others } = upstream()
      while (running.length < workers && waiting.length > 0) running.push(waiting.shift() as Job)
      const jobs = working()
      if (jobs.length === 0) return false
      const ms = Math.min(...jobs.map(({ free, locked }) => (free > 0 ? free : locked)))
      nowMs += ms / Math.min(1, cores / (jobs.length + others))
      for (const job of jobs) workOn(job, ms)
      const ended = running.findIndex(({ free, locked }) => free <= 0 && locked <= 1e-9)
      if (ended !== -1) running.splice(ended, 1)[0]?.done()
      return true
    },
  }
}

export const singly = Number.POSITIVE_INFINITY

/** Clients that send one batch after the other, each of 25 items. */
type Load = {
  /** The state of the upstream after a number of batches. */
  upstream(answered: number): Upstream
  readonly batches: number
  readonly clients: number
  readonly seed: number
}

const size = 25
const concurrency = 8

/** Mean milliseconds of a batch: always sent in this number of parts, or as `auto` decides. */
export const meanMs = ({ upstream, batches, clients, seed }: Load, parts: number | 'auto'): number => {
  let answered = 0
  let sumMs = 0
  const model = createModel(() => upstream(answered), randomOf(seed))
  const clock = { now: model.now, monotonic: model.now }
  const limits = { concurrency, mostItems: size, mostChunkMs: 0 }
  const splitter = createSplitter({ mode: 'auto', ...limits, clock }, createSplitMemory())
  const begin = (): void => {
    const split = splitter.begin({ runnable: size, groups: size, work: 'PUT posts' })
    const startedMs = model.now()
    const requests = Math.min(parts === 'auto' ? split.parts : parts, size)
    const sizes = Array.from({ length: requests }, (_, at) => Math.floor((size + at) / requests))
    let left = requests
    const ended = (): void => {
      left -= 1
      sendNext()
      if (left > 0) return
      split.ended(model.now() - startedMs)
      sumMs += model.now() - startedMs
      answered += 1
      begin()
    }
    const sendNext = (): void => {
      const items = sizes.pop()
      if (items !== undefined) model.send(items, ended)
    }
    for (let at = 0; at < concurrency; at += 1) sendNext()
  }
  for (let client = 0; client < clients; client += 1) begin()
  while (answered < batches) model.step()
  return sumMs / answered
}
