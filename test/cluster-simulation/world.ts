import { type Random, randomFrom } from '../support/random.ts'

/** Something that happens at a moment: a message that arrives, a timer, a request, a fault. */
type Step = {
  at: number
  /** Among steps of one moment: the order in which they were scheduled. */
  order: number
  readonly process: Process | undefined
  readonly kind: string
  readonly run: () => void
  /** Of a timer: when it is due by the monotonic clock of its process. */
  readonly due: number | undefined
  isCancelled: boolean
}

export type Cancellable = Pick<Step, 'isCancelled'>

/** The network between a machine and Redis: what is sent during an outage arrives after it. */
export type Machine = {
  outUntil: number
  backUntil: number
  /** Until then, messages take up to `sluggishMs` more. */
  sluggishUntil: number
  sluggishMs: number
}

export const newMachine = (): Machine => ({ outUntil: 0, backUntil: 0, sluggishUntil: 0, sluggishMs: 0 })

/** A process of a gateway: its clocks, and whether it runs. Steps of a paused one wait until it continues. */
export type Process = {
  readonly name: string
  readonly machine: Machine
  readonly random: Random
  /** How fast its monotonic clock runs. */
  readonly rate: number
  isAlive: boolean
  isPaused: boolean
  /** It has closed the connections of its clients: what it responds reaches nobody. */
  isCut: boolean
  /** Time in which its machine was suspended: the monotonic clock does not count it. */
  suspendedMs: number
  /** By how much its wall clock is wrong. */
  wallErrorMs: number
  waiting: Step[]
}

const isBefore = (one: Step, other: Step): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

/** A binary heap, the earliest step first. */
const createQueue = () => {
  const heap: Step[] = []
  const at = (index: number): Step => heap[index] as Step
  const push = (step: Step): void => {
    let index = heap.length
    heap.push(step)
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(step, at(parent))) break
      heap[index] = at(parent)
      index = parent
    }
    heap[index] = step
  }
  const pop = (): Step | undefined => {
    const first = heap[0]
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return first
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(at(child + 1), at(child))) child += 1
      if (!isBefore(at(child), last)) break
      heap[index] = at(child)
      index = child
    }
    heap[index] = last
    return first
  }
  return { push, pop }
}

/** The wall clocks show this at the beginning. */
const startOfWorld = Date.UTC(2026, 0, 1)

/** A number that depends on all texts and numbers that were added. */
const createDigest = () => {
  let hash = 0x811c9dc5
  const codes = new Map<string, number>()
  const addNumber = (value: number): void => {
    hash = Math.imul(hash ^ (value | 0), 0x01000193)
    hash ^= hash >>> 15
  }
  const codeOf = (text: string): number => {
    let code = 0
    for (let i = 0; i < text.length; i += 1) code = (Math.imul(code, 31) + text.charCodeAt(i)) | 0
    return code
  }
  return {
    addNumber,
    addText: (text: string): void => {
      let code = codes.get(text)
      if (code === undefined) {
        code = codeOf(text)
        if (codes.size < 10_000) codes.set(text, code)
      }
      addNumber(code)
    },
    value: (): string => (hash >>> 0).toString(16).padStart(8, '0'),
  }
}

/** A random source of its own for each purpose: what is left out of a run does not change the chances of the rest. */
const seedOf = (seed: number, purpose: string): number => {
  let hash = seed | 0
  for (let i = 0; i < purpose.length; i += 1) {
    hash = Math.imul(hash ^ purpose.charCodeAt(i), 0x9e3779b1)
    hash ^= hash >>> 13
  }
  return hash
}

const newProcess = (name: string, machine: Machine, random: Random): Process => ({
  name,
  machine,
  random,
  // Two clocks differ by at most 4 %: docs/decisions/0007 assumes 5 %.
  rate: 0.98 + (random() < 0.5 ? Math.round(random()) : random()) * 0.04,
  isAlive: true,
  isPaused: false,
  isCut: false,
  suspendedMs: 0,
  wallErrorMs: 0,
  waiting: [],
})

/** Virtual time, and everything that happens in it, one step after the other. */
const createWorld = () => {
  let seed = 0
  let now = 0
  let order = 0
  let steps = 0
  let queue = createQueue()
  let immediates: { readonly process: Process | undefined; readonly run: () => void }[] = []
  let digest = createDigest()
  let lines: string[] | undefined
  // Until the first run, modules are loaded.
  let current: Process | undefined = newProcess('loading', newMachine(), randomFrom(0))

  const schedule = (
    at: number,
    process: Process | undefined,
    kind: string,
    run: () => void,
    due?: number,
  ): Cancellable => {
    order += 1
    const step: Step = { at: Math.max(at, now), order, process, kind, run, due, isCancelled: false }
    queue.push(step)
    return step
  }
  const monotonicOf = (process: Process): number => (now - process.suspendedMs) * process.rate

  const invalidation = (text: string): void => {
    lines?.push(`${now.toFixed(2).padStart(9)} ${text}`)
  }

  const runStep = (step: Step): void => {
    const { process, kind, due } = step
    if (process?.isAlive === false) return
    if (process?.isPaused === true) {
      process.waiting.push(step)
      return
    }
    if (process !== undefined && due !== undefined) {
      const leftMs = due - monotonicOf(process)
      if (leftMs > 1e-6) {
        step.at = now + leftMs / process.rate
        queue.push(step)
        return
      }
    }
    steps += 1
    digest.addNumber(now * 1000)
    digest.addText(kind)
    current = process
    if (lines !== undefined && !kind.startsWith('timer')) invalidation(`${process?.name ?? '-'} ${kind}`)
    step.run()
  }

  const runImmediates = (): void => {
    const all = immediates
    immediates = []
    for (const { process, run } of all) {
      if (process?.isAlive === false) continue
      current = process
      run()
    }
  }

  return {
    start: (nextSeed: number, isTraced: boolean): void => {
      seed = nextSeed
      now = 0
      order = 0
      steps = 0
      queue = createQueue()
      immediates = []
      digest = createDigest()
      lines = isTraced ? [] : undefined
      current = undefined
    },
    get now() {
      return now
    },
    /** Of the step that runs, and of all that it causes. */
    get current() {
      return current
    },
    get steps() {
      return steps
    },
    get trace(): readonly string[] {
      return lines ?? []
    },
    get isTraced() {
      return lines !== undefined
    },
    note: invalidation,
    /** Results that another run of the same seed must have too. */
    seen: (value: number): void => digest.addNumber(value),
    digest: (): string => digest.value(),
    randomFor: (purpose: string): Random => randomFrom(seedOf(seed, purpose)),
    schedule,
    monotonicOf,
    wallOf: (process: Process): number => startOfWorld + now + process.wallErrorMs,
    /** Runs after the step and what it causes, before any other step. */
    immediately: (run: () => void): void => {
      immediates.push({ process: current, run })
    },
    createProcess: (name: string, machine: Machine): Process =>
      newProcess(name, machine, randomFrom(seedOf(seed, `process ${name}`))),
    /** What has arrived meanwhile runs at once: timers first, as in Node. */
    resume: (process: Process): void => {
      process.isPaused = false
      const { waiting } = process
      process.waiting = []
      const rank = ({ due }: Step): number => (due === undefined ? 1 : 0)
      waiting.sort((one, other) => rank(one) - rank(other) || one.at - other.at || one.order - other.order)
      for (const step of waiting) {
        order += 1
        step.at = now
        step.order = order
        queue.push(step)
      }
    },
    /** Runs one step; false when there is none before `until`. What it causes has to be run before the next call. */
    advance: (until: number): boolean => {
      if (immediates.length > 0) {
        runImmediates()
        return true
      }
      for (;;) {
        const step = queue.pop()
        if (step === undefined || step.at > until) return false
        if (step.isCancelled) continue
        now = step.at
        runStep(step)
        return true
      }
    },
  }
}

/** There is one world at a time: the replacements of timers and of the client of Redis find it here. */
export const world = createWorld()

/** The process of the step that runs. */
export const currentProcess = (): Process => {
  const { current } = world
  if (current === undefined) throw new Error('code of a gateway runs outside of its process')
  return current
}
