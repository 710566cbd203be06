import cluster, { type Worker } from 'node:cluster'
import { randomBytes } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { maxLedgerEntries } from './ledger.ts'
import type {
  Assignment,
  DrainStart,
  LedgerCall,
  LedgerResponse,
  ToParent,
  ToWorker,
  WorkerEnd,
  WorkerEnding,
  WorkerEvent,
  WorkerRequest,
  WorkersStatus,
} from './worker-link.ts'
import { createMemoryLedger, type MemoryLedger } from './workers/memory-ledger.ts'

/** A view may lack a slow worker's response; a change needs the responses of all. */
type Timeout = 'brief' | 'until-all'

/** Sends a question to all ready workers; returns the responses that arrive in time, or those of all workers that have not exited. */
export type Ask = (question: WorkerRequest, timeout: Timeout) => Promise<readonly unknown[]>

export type SupervisorOptions = {
  readonly workers: number
  /** The program that each worker runs, and its arguments. */
  readonly program: { readonly file: string; readonly args: readonly string[] }
  readonly settings: () => unknown
  /** Prepares a question for the workers, with the data that they need to answer it. */
  readonly through: (question: WorkerRequest, ask: Ask) => Promise<readonly unknown[]>
  /** Called once or more when a worker requests the end of all workers. */
  readonly end: () => void
  /** The question for a worker that became ready with stale data. */
  readonly stale: (settings: unknown) => WorkerRequest | undefined
  /** Time until a draining worker is killed. */
  readonly graceMs: number
  readonly clock: Clock
  readonly report: (event: WorkerEvent) => void
}

const handleCall = (ledger: MemoryLedger, member: string, call: LedgerCall): LedgerResponse => {
  switch (call.name) {
    case 'sync':
      return ledger.sync(member, call.position)
    case 'append':
      return ledger.append(member, call.invalidations, call.settled)
    case 'begin':
      ledger.begin(member, call.write, call.invalidations)
      return null
  }
}

const firstPauseMs = 50
const longestPauseMs = 10_000
/** A worker that was ready for this time did not fail at its start. */
const servedAfterMs = 1_000

/**
 * How long to wait before an ended worker is replaced: longer each time, so that a fault at start does not burn the machine. A worker
 * that has served is replaced at once, or a request that ends workers would keep all of them down.
 * `livedMs`: how long the worker was ready.
 */
const createRestartPause = (): ((livedMs: number) => number) => {
  let nextMs = firstPauseMs
  return (livedMs) => {
    if (livedMs >= servedAfterMs) {
      nextMs = firstPauseMs
      return 0
    }
    const pauseMs = nextMs
    nextMs = Math.min(longestPauseMs, pauseMs * 2)
    return pauseMs
  }
}

type WatchedWorker = {
  readonly worker: Worker
  readonly member: string
  settings: unknown
  readyAt: number | undefined
  /** Reset to 0 by each message of the worker. */
  silentTicks: number
  killed: boolean
  /** Takes the response to each question; none when the worker has ended. */
  readonly open: Map<number, (responses: readonly unknown[]) => void>
}

const tickMs = 1_000
/** A worker blocked for this time is killed. */
const stuckAfterTicks = 10
/** A starting worker loads modules, perhaps beside many others: it gets more time. */
const stuckInStartAfterTicks = 60

/** Kills workers without a heartbeat. Counts ticks of this process, so that its own suspension is not held against them. Returns the function that stops it. */
const watchSilence = (all: () => Iterable<WatchedWorker>): (() => void) => {
  const timer = setInterval(() => {
    for (const watchedWorker of all()) {
      watchedWorker.silentTicks += 1
      const max = watchedWorker.readyAt === undefined ? stuckInStartAfterTicks : stuckAfterTicks
      if (watchedWorker.silentTicks < max || watchedWorker.killed) continue
      watchedWorker.killed = true
      watchedWorker.worker.process.kill('SIGKILL')
    }
  }, tickMs)
  return () => clearInterval(timer)
}

/** Number of a question without waiting callers. */
const nobodyAsked = 0

const gatherTimeoutMs = 2_000

/** Starts processes that share a port, and replaces those that end. Resolves when all are ready; rejects when one cannot start. */
export const startSupervisor = async (options: SupervisorOptions) => {
  const { clock, report } = options
  const watched = new Map<number, WatchedWorker>()
  const byMember = new Map<string, WatchedWorker>()
  const ended: Record<WorkerEnd, number> = { exit: 0, signal: 0, stuck: 0 }
  const instance = randomBytes(6).toString('hex')
  const nextPauseMs = createRestartPause()
  let started = 0
  let questions = nobodyAsked
  let complete = false
  let closing = false
  let addresses: unknown
  let startup: { done(): void; failed(error: Error): void } | undefined

  const tell = ({ worker }: WatchedWorker, message: ToWorker): void => {
    // A leaving worker reads no messages; its `exit` event follows.
    if (worker.isConnected()) worker.send(message, () => undefined)
  }
  const ledger = createMemoryLedger({
    epoch: instance,
    maxLedgerEntries,
    clock,
    push: (member, push) => {
      const to = byMember.get(member)
      if (to !== undefined) tell(to, { kind: 'pushed', push })
    },
  })
  const status = (): WorkersStatus => ({
    wanted: options.workers,
    ready: ready().length,
    complete,
    ended: { ...ended },
  })
  const sendStatus = (): void => {
    for (const watchedWorker of watched.values())
      tell(watchedWorker, { kind: 'workers-status', status: status() })
  }

  const becameReady = (watchedWorker: WatchedWorker, reported: unknown): void => {
    watchedWorker.readyAt = clock.monotonic()
    addresses ??= reported
    complete ||= status().ready >= options.workers
    report({ kind: 'worker-ready', member: watchedWorker.member, pid: watchedWorker.worker.process.pid ?? 0 })
    sendStatus()
    const question = options.stale(watchedWorker.settings)
    if (question !== undefined) tell(watchedWorker, { kind: 'asked', id: nobodyAsked, question })
    if (complete) startup?.done()
  }
  const askWorker = (
    watchedWorker: WatchedWorker,
    question: WorkerRequest,
    timeout: Timeout,
  ): Promise<readonly unknown[]> =>
    new Promise((responded) => {
      questions += 1
      const id = questions
      const end = (responses: readonly unknown[]): void => {
        clearTimeout(timer)
        watchedWorker.open.delete(id)
        responded(responses)
      }
      const timer = timeout === 'brief' ? setTimeout(end, gatherTimeoutMs, []) : undefined
      watchedWorker.open.set(id, end)
      tell(watchedWorker, { kind: 'asked', id, question })
    })
  const ready = (): readonly WatchedWorker[] =>
    [...watched.values()].filter(({ readyAt }) => readyAt !== undefined)
  const askReady: Ask = async (question, timeout) => {
    const responses = await Promise.all(
      ready().map((watchedWorker) => askWorker(watchedWorker, question, timeout)),
    )
    return responses.flat()
  }
  const ask = (question: WorkerRequest): Promise<readonly unknown[]> => options.through(question, askReady)
  const assign = (watchedWorker: WatchedWorker): Assignment => {
    watchedWorker.settings = options.settings()
    return { member: watchedWorker.member, settings: watchedWorker.settings }
  }
  const take = (watchedWorker: WatchedWorker, message: ToParent): void => {
    watchedWorker.silentTicks = 0
    switch (message.kind) {
      case 'hello':
        tell(watchedWorker, { kind: 'assigned', assignment: assign(watchedWorker) })
        break
      case 'alive':
        break
      case 'ready':
        becameReady(watchedWorker, message.addresses)
        break
      case 'failed':
        startup?.failed(Object.assign(new Error(message.message), message.facts))
        break
      case 'end':
        options.end()
        break
      case 'call':
        tell(watchedWorker, {
          kind: 'called',
          id: message.id,
          response: handleCall(ledger, watchedWorker.member, message.call),
        })
        break
      case 'acknowledge':
        ledger.acknowledge(watchedWorker.member, message.applied, message.entries, message.writer)
        break
      case 'ask':
        void ask(message.question).then((responses) =>
          tell(watchedWorker, { kind: 'answered', id: message.id, responses }),
        )
        break
      case 'answer':
        // `null`: it could not answer.
        watchedWorker.open.get(message.id)?.(message.content === null ? [] : [message.content])
        break
    }
  }

  const howEnded = (watchedWorker: WatchedWorker, signal: string | null): WorkerEnd => {
    if (watchedWorker.killed) return 'stuck'
    return signal === null ? 'exit' : 'signal'
  }
  const gone = (watchedWorker: WatchedWorker, code: number | null, signal: string | null): void => {
    watched.delete(watchedWorker.worker.id)
    byMember.delete(watchedWorker.member)
    for (const end of watchedWorker.open.values()) end([])
    const unsettled = ledger.forget(watchedWorker.member)
    for (const other of watched.values()) tell(other, { kind: 'ended', member: watchedWorker.member })
    if (closing) return
    startup?.failed(new Error(`a worker ended with ${signal ?? code} before it was ready`))
    const livedMs = watchedWorker.readyAt === undefined ? 0 : clock.monotonic() - watchedWorker.readyAt
    const pid = watchedWorker.worker.process.pid ?? 0
    const { member } = watchedWorker
    replace(
      { member, pid, end: howEnded(watchedWorker, signal), code: signal ?? code ?? 0, unsettled },
      livedMs,
    )
  }
  const replace = (ending: WorkerEnding, livedMs: number): void => {
    ended[ending.end] += 1
    const nextInMs = nextPauseMs(livedMs)
    report({ kind: 'worker-ended', ...ending, nextInMs })
    sendStatus()
    setTimeout(() => {
      if (!closing) start()
    }, nextInMs)
  }
  /** The system is out of processes or memory, or Node is being replaced on disk: try again in a moment. */
  const notStarted = (member: string, { code, message }: NodeJS.ErrnoException): void => {
    startup?.failed(new Error(`a worker could not be started: ${message}`))
    if (!closing) replace({ member, pid: 0, end: 'exit', code: code ?? message, unsettled: 0 }, 0)
  }
  const start = (): void => {
    started += 1
    const member = `${instance}.${started}`
    try {
      watchOver(cluster.fork(), member)
    } catch (error) {
      notStarted(member, error as NodeJS.ErrnoException)
    }
  }
  const watchOver = (worker: Worker, member: string): void => {
    if (worker.process.pid === undefined) {
      worker.once('error', (error) => notStarted(member, error))
      return
    }
    const watchedWorker: WatchedWorker = {
      worker,
      member,
      settings: undefined,
      readyAt: undefined,
      silentTicks: 0,
      killed: false,
      open: new Map(),
    }
    watched.set(worker.id, watchedWorker)
    byMember.set(member, watchedWorker)
    worker.on('message', (message) => take(watchedWorker, message as ToParent))
    worker.on('error', () => undefined)
    worker.on('exit', (code, signal) => gone(watchedWorker, code, signal))
  }

  const endWatch = watchSilence(() => watched.values())

  const close = async (start: DrainStart = 'after-delay'): Promise<'finished' | 'cut'> => {
    closing = true
    endWatch()
    const all = [...watched.values()]
    const exits = all.map(
      ({ worker }) => new Promise<boolean>((resolve) => worker.once('exit', (code) => resolve(code === 0))),
    )
    for (const watchedWorker of all) tell(watchedWorker, { kind: 'drain', start })
    const hard = setTimeout(() => {
      for (const { worker } of all) worker.process.kill('SIGKILL')
    }, options.graceMs)
    const finished = await Promise.all(exits)
    clearTimeout(hard)
    return finished.every(Boolean) ? 'finished' : 'cut'
  }

  // Workers accept connections themselves. A connection that another process accepts for them is lost when its worker ends first.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  cluster.setupPrimary({ exec: options.program.file, args: [...options.program.args] })
  const allReady = new Promise<void>((resolve, reject) => {
    startup = {
      done: () => {
        startup = undefined
        resolve()
      },
      failed: (error) => {
        startup = undefined
        reject(error)
      },
    }
  })
  for (let count = 0; count < options.workers; count += 1) start()
  try {
    await allReady
  } catch (error) {
    await close()
    throw error
  }
  return {
    /** The addresses that the first ready worker reported. */
    get addresses() {
      return addresses
    },
    ask,
    /** Drains all workers; `cut`: some did not finish in time. */
    close,
  }
}
