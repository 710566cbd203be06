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

/** The processes that share a port: those that end are replaced. */
class Supervisor {
  readonly #options: SupervisorOptions
  readonly #watched = new Map<number, WatchedWorker>()
  readonly #byMember = new Map<string, WatchedWorker>()
  readonly #ended: Record<WorkerEnd, number> = { exit: 0, signal: 0, stuck: 0 }
  readonly #instance = randomBytes(6).toString('hex')
  readonly #nextPauseMs = createRestartPause()
  #started = 0
  #questions = nobodyAsked
  #complete = false
  #closing = false
  #addresses: unknown
  #startup: { done(): void; failed(error: Error): void } | undefined
  readonly #ledger: ReturnType<typeof createMemoryLedger>
  readonly #endWatch: ReturnType<typeof watchSilence>

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#ledger = createMemoryLedger({
      epoch: this.#instance,
      maxLedgerEntries,
      clock: this.#options.clock,
      push: (member, push) => {
        const to = this.#byMember.get(member)
        if (to !== undefined) this.#tell(to, { kind: 'pushed', push })
      },
    })
    this.#endWatch = watchSilence(() => this.#watched.values())
  }

  /** Resolves when all are ready. */
  async start(): Promise<void> {
    // Workers accept connections themselves. A connection that another process accepts for them is lost when its worker ends first.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({ exec: this.#options.program.file, args: [...this.#options.program.args] })
    const allReady = new Promise<void>((resolve, reject) => {
      this.#startup = {
        done: () => {
          this.#startup = undefined
          resolve()
        },
        failed: (error) => {
          this.#startup = undefined
          reject(error)
        },
      }
    })
    for (let count = 0; count < this.#options.workers; count += 1) this.#startWorker()
    try {
      await allReady
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** The addresses that the first ready worker reported. */
  get addresses() {
    return this.#addresses
  }

  #tell({ worker }: WatchedWorker, message: ToWorker): void {
    // A leaving worker reads no messages; its `exit` event follows.
    if (worker.isConnected()) worker.send(message, () => undefined)
  }

  #status(): WorkersStatus {
    return {
      wanted: this.#options.workers,
      ready: this.#ready().length,
      complete: this.#complete,
      ended: { ...this.#ended },
    }
  }

  #sendStatus(): void {
    for (const watchedWorker of this.#watched.values())
      this.#tell(watchedWorker, { kind: 'workers-status', status: this.#status() })
  }

  #becameReady(watchedWorker: WatchedWorker, reported: unknown): void {
    watchedWorker.readyAt = this.#options.clock.monotonic()
    this.#addresses ??= reported
    this.#complete ||= this.#status().ready >= this.#options.workers
    this.#options.report({
      kind: 'worker-ready',
      member: watchedWorker.member,
      pid: watchedWorker.worker.process.pid ?? 0,
    })
    this.#sendStatus()
    const question = this.#options.stale(watchedWorker.settings)
    if (question !== undefined) this.#tell(watchedWorker, { kind: 'asked', id: nobodyAsked, question })
    if (this.#complete) this.#startup?.done()
  }

  #askWorker(
    watchedWorker: WatchedWorker,
    question: WorkerRequest,
    timeout: Timeout,
  ): Promise<readonly unknown[]> {
    return new Promise((responded) => {
      this.#questions += 1
      const id = this.#questions
      const end = (responses: readonly unknown[]): void => {
        clearTimeout(timer)
        watchedWorker.open.delete(id)
        responded(responses)
      }
      const timer = timeout === 'brief' ? setTimeout(end, gatherTimeoutMs, []) : undefined
      watchedWorker.open.set(id, end)
      this.#tell(watchedWorker, { kind: 'asked', id, question })
    })
  }

  #ready(): readonly WatchedWorker[] {
    return [...this.#watched.values()].filter(({ readyAt }) => readyAt !== undefined)
  }

  readonly #askReady = async (question: WorkerRequest, timeout: Timeout): Promise<readonly unknown[]> => {
    const responses = await Promise.all(
      this.#ready().map((watchedWorker) => this.#askWorker(watchedWorker, question, timeout)),
    )
    return responses.flat()
  }

  ask(question: WorkerRequest): Promise<readonly unknown[]> {
    return this.#options.through(question, this.#askReady)
  }

  #assign(watchedWorker: WatchedWorker): Assignment {
    watchedWorker.settings = this.#options.settings()
    return { member: watchedWorker.member, settings: watchedWorker.settings }
  }

  #take(watchedWorker: WatchedWorker, message: ToParent): void {
    watchedWorker.silentTicks = 0
    switch (message.kind) {
      case 'hello':
        this.#tell(watchedWorker, { kind: 'assigned', assignment: this.#assign(watchedWorker) })
        break
      case 'alive':
        break
      case 'ready':
        this.#becameReady(watchedWorker, message.addresses)
        break
      case 'failed':
        this.#startup?.failed(Object.assign(new Error(message.message), message.facts))
        break
      case 'end':
        this.#options.end()
        break
      case 'call':
        this.#tell(watchedWorker, {
          kind: 'called',
          id: message.id,
          response: handleCall(this.#ledger, watchedWorker.member, message.call),
        })
        break
      case 'acknowledge':
        this.#ledger.acknowledge(watchedWorker.member, message.applied, message.entries, message.writer)
        break
      case 'ask':
        void this.ask(message.question).then((responses) =>
          this.#tell(watchedWorker, { kind: 'answered', id: message.id, responses }),
        )
        break
      case 'answer':
        // `null`: it could not answer.
        watchedWorker.open.get(message.id)?.(message.content === null ? [] : [message.content])
        break
    }
  }

  #howEnded(watchedWorker: WatchedWorker, signal: string | null): WorkerEnd {
    if (watchedWorker.killed) return 'stuck'
    return signal === null ? 'exit' : 'signal'
  }

  #gone(watchedWorker: WatchedWorker, code: number | null, signal: string | null): void {
    this.#watched.delete(watchedWorker.worker.id)
    this.#byMember.delete(watchedWorker.member)
    for (const end of watchedWorker.open.values()) end([])
    const unsettled = this.#ledger.forget(watchedWorker.member)
    for (const other of this.#watched.values())
      this.#tell(other, { kind: 'ended', member: watchedWorker.member })
    if (this.#closing) return
    this.#startup?.failed(new Error(`a worker ended with ${signal ?? code} before it was ready`))
    const livedMs =
      watchedWorker.readyAt === undefined ? 0 : this.#options.clock.monotonic() - watchedWorker.readyAt
    const pid = watchedWorker.worker.process.pid ?? 0
    const { member } = watchedWorker
    this.#replace(
      { member, pid, end: this.#howEnded(watchedWorker, signal), code: signal ?? code ?? 0, unsettled },
      livedMs,
    )
  }

  #replace(ending: WorkerEnding, livedMs: number): void {
    this.#ended[ending.end] += 1
    const nextInMs = this.#nextPauseMs(livedMs)
    this.#options.report({ kind: 'worker-ended', ...ending, nextInMs })
    this.#sendStatus()
    setTimeout(() => {
      if (!this.#closing) this.#startWorker()
    }, nextInMs)
  }

  /** The system is out of processes or memory, or Node is being replaced on disk: try again in a moment. */
  #notStarted(member: string, { code, message }: NodeJS.ErrnoException): void {
    this.#startup?.failed(new Error(`a worker could not be started: ${message}`))
    if (!this.#closing) this.#replace({ member, pid: 0, end: 'exit', code: code ?? message, unsettled: 0 }, 0)
  }

  #startWorker(): void {
    this.#started += 1
    const member = `${this.#instance}.${this.#started}`
    try {
      this.#watchOver(cluster.fork(), member)
    } catch (error) {
      this.#notStarted(member, error as NodeJS.ErrnoException)
    }
  }

  #watchOver(worker: Worker, member: string): void {
    if (worker.process.pid === undefined) {
      worker.once('error', (error) => this.#notStarted(member, error))
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
    this.#watched.set(worker.id, watchedWorker)
    this.#byMember.set(member, watchedWorker)
    worker.on('message', (message) => this.#take(watchedWorker, message as ToParent))
    worker.on('error', () => undefined)
    worker.on('exit', (code, signal) => this.#gone(watchedWorker, code, signal))
  }

  /** Drains all workers; `cut`: some did not finish in time. */
  async close(start: DrainStart = 'after-delay'): Promise<'finished' | 'cut'> {
    this.#closing = true
    this.#endWatch()
    const all = [...this.#watched.values()]
    const exits = all.map(
      ({ worker }) => new Promise<boolean>((resolve) => worker.once('exit', (code) => resolve(code === 0))),
    )
    for (const watchedWorker of all) this.#tell(watchedWorker, { kind: 'drain', start })
    const hard = setTimeout(() => {
      for (const { worker } of all) worker.process.kill('SIGKILL')
    }, this.#options.graceMs)
    const finished = await Promise.all(exits)
    clearTimeout(hard)
    return finished.every(Boolean) ? 'finished' : 'cut'
  }
}

/** Resolves when all processes are ready; rejects when one cannot start. */
export const startSupervisor = async (options: SupervisorOptions): Promise<Supervisor> => {
  const supervisor = new Supervisor(options)
  await supervisor.start()
  return supervisor
}
