import type { ResponseHead } from '../../http/message.ts'
import type { ScheduledTasksReading } from '../../service/contract.ts'
import { invalidateWrite } from '../apply-invalidations.ts'
import type { CacheDeps } from '../ports.ts'
import type { ValidatedContext } from '../request-context.ts'
import { getsReceipt } from './receipt-nonce.ts'
import { reachedBy, taskInvalidations } from './write-invalidations.ts'

type TaskTimes = Pick<ScheduledTasksReading, 'lockMs' | 'settleMs'>

type Drop = () => Promise<unknown> | undefined

/**
 * Runs of the scheduled tasks of one upstream, which anyone can ask for at any time. The first one drops what they may change, again
 * when they are likely to be done, and when the lock is over; those asked for meanwhile share the last drop, which begins the next
 * lock. So what a run writes is dropped within the time of a lock, and requests without end cost one drop in it.
 */
export class ScheduledTasks {
  readonly #times: TaskTimes
  readonly #quiet: () => void
  #drop: Drop = () => undefined
  #isLocked = false
  /** How many runs were asked for since the lock was taken. */
  #askedAgain = 0

  /** `quiet`: nobody has asked for the time of a lock. */
  constructor(times: TaskTimes, quiet: () => void) {
    this.#times = times
    this.#quiet = quiet
  }

  /** A run may have begun; `drop` is kept in place of the one before. */
  started(drop: Drop): Promise<unknown> | undefined {
    this.#drop = drop
    if (!this.#isLocked) return this.#begin(1)
    this.#askedAgain += 1
    return undefined
  }

  /** Several runs in one lock are more than an upstream starts: they share the drop at the end of the next one. */
  #begin(runs: number): Promise<unknown> | undefined {
    this.#isLocked = true
    this.#askedAgain = 0
    if (runs === 1) setTimeout(() => this.#dropLater(this.#drop), this.#times.settleMs).unref()
    setTimeout(() => this.#end(), this.#times.lockMs).unref()
    return this.#drop()
  }

  #end(): void {
    const runs = this.#askedAgain
    this.#isLocked = false
    if (runs > 0) {
      this.#dropLater(() => this.#begin(runs))
      return
    }
    this.#dropLater(this.#drop)
    this.#quiet()
  }

  /** Nobody waits for it. */
  #dropLater(drop: Drop): void {
    void (async () => drop())().catch(() => undefined)
  }
}

export const createTasksByServices = () => {
  const all = new Map<string, ScheduledTasks>()
  return {
    /** `names`: all services that they reach. */
    reaching: (names: readonly string[], times: TaskTimes): ScheduledTasks => {
      const key = [...names].sort().join(' ')
      const tasks = all.get(key) ?? new ScheduledTasks(times, () => all.delete(key))
      all.set(key, tasks)
      return tasks
    },
  }
}

/** Drops what scheduled tasks that may have begun can change: everything of the services at the upstream. */
export const tasksStarted = (
  { cache, writes, writeRegistry }: CacheDeps,
  { service, snapshot, record }: ValidatedContext,
): Promise<unknown> | undefined => {
  const { scheduledTasks } = service.contract
  if (scheduledTasks === undefined) return undefined
  const names = reachedBy({ service, snapshot }).map(({ name }) => name)
  return writes.tasks.reaching(names, scheduledTasks).started(() => {
    const invalidations = taskInvalidations({ service, snapshot })
    invalidateWrite(cache, { service, snapshot, record }, invalidations)
    return writeRegistry?.broadcast(invalidations)
  })
}

/** A script that is forbidden or missing has started none. */
export const mayHaveStarted = ({ status }: Pick<ResponseHead, 'status'>): boolean =>
  status < 400 || status >= 500

/** The response to a read or a pass may say that tasks run behind it. While the companion's log is read, what they write is in it. */
export const noticeTasks = (deps: CacheDeps, requestContext: ValidatedContext, head: ResponseHead): void => {
  const { service, query } = requestContext
  if (service.contract.scheduledTasks?.runBehind(query, head) !== true) return
  if (getsReceipt(requestContext)) return
  void tasksStarted(deps, requestContext)?.catch(() => undefined)
}
