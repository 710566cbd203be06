import pLimit from 'p-limit'

/** How one task of a schedule ended. `started` and `ended` are times of the clock. */
export type TaskEnd<Result> =
  | {
      readonly kind: 'finished'
      readonly result: Result
      readonly startedMs: number
      readonly endedMs: number
    }
  | { readonly kind: 'not-begun' }
  /** Stopped while it ran; it keeps running, and its result is ignored. */
  | { readonly kind: 'unfinished'; readonly startedMs: number }

/** All ends, and the most tasks that ran at one moment. */
export type ScheduleEnd<Result> = { readonly ends: readonly TaskEnd<Result>[]; readonly parallelism: number }

type Schedule<Result> = {
  /** For each task the earlier ones that it waits for; undefined where there is nothing to run. */
  readonly waits: readonly (readonly number[] | undefined)[]
  readonly concurrency: number
  /** Called before a task begins, within its turn; false = it does not begin. */
  enter(): Promise<boolean>
  /** Called once for each `enter` that gave true, when its task has ended. */
  leave(): void
  /** Never rejects. */
  run(index: number): Promise<Result>
  /** Aborted when no more task shall begin, and those that run are no longer waited for. */
  readonly stop: AbortSignal
  now(): number
}

/** Runs tasks in an order that keeps every wait, at most `concurrency` at once; a task that waits does not count. */
export const runSchedule = async <Result>(schedule: Schedule<Result>): Promise<ScheduleEnd<Result>> => {
  const { stop, now } = schedule
  const limit = pLimit(schedule.concurrency)
  const ends: TaskEnd<Result>[] = schedule.waits.map(() => ({ kind: 'not-begun' }))
  let running = 0
  let parallelism = 0

  const runOne = async (index: number): Promise<void> => {
    if (stop.aborted || !(await schedule.enter())) return
    const startedMs = now()
    ends[index] = { kind: 'unfinished', startedMs }
    running += 1
    parallelism = Math.max(parallelism, running)
    const result = await schedule.run(index)
    running -= 1
    schedule.leave()
    ends[index] = { kind: 'finished', result, startedMs, endedMs: now() }
  }

  const tasks: Promise<void>[] = []
  const begin = (index: number, waits: readonly number[]): Promise<void> => {
    if (waits.length === 0) return limit(runOne, index)
    return Promise.all(waits.map((earlier) => tasks[earlier])).then(() => limit(runOne, index))
  }
  for (const [index, waits] of schedule.waits.entries()) {
    tasks.push(waits === undefined ? Promise.resolve() : begin(index, waits))
  }

  const stopped = new Promise<void>((resolve) => {
    if (stop.aborted) resolve()
    else stop.addEventListener('abort', () => resolve(), { once: true })
  })
  await Promise.race([Promise.all(tasks), stopped])
  return { ends: [...ends], parallelism }
}
