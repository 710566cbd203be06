import { answeredPart, envelopeOf, madePart, nullPart, type Part } from './answer.ts'
import { itemLine, lastLine } from './answer-lines.ts'
import { collapseReads } from './collapse-reads.ts'
import { withDependencies } from './dependencies.ts'
import type { BatchResult } from './events.ts'
import type { ItemAnswer } from './item.ts'
import { type ItemError, itemError } from './item-error.ts'
import { planAnswer } from './plan-answer.ts'
import { type PlannedBatch, type PlannedItem, type PlanOptions, planBatch } from './plan-batch.ts'
import { batchEvent, itemEvent } from './report-batch.ts'
import { honouringRetryAfter } from './retry-after.ts'
import { type ItemsRun, type RunOptions, runItems } from './run-items.ts'
import type { TaskEnd } from './schedule.ts'
import { stopWatch, unlessStopped } from './stop-watch.ts'

/** Resolved settings of a service's batch route, and what it needs from others. */
export type BatchOptions = RunOptions &
  PlanOptions & {
    /** For the whole batch; 0 = none. */
    readonly deadlineMs: number
  }

/** The answer to a batch. */
type BatchAnswer = { readonly status: number; readonly content: Buffer }

/** A batch that has been read: answered already, or about to run. */
type BegunBatch =
  | ({ readonly kind: 'answered' } & BatchAnswer)
  | {
      readonly kind: 'running'
      /** Runs it; the answer is the whole envelope. */
      whole(): Promise<BatchAnswer>
      /**
       * Runs it; every answer is a line, as soon as it is there, and the last line says that it is the last. No item begins
       * as long as what `write` gave back is pending.
       */
      lines(write: WriteLine): Promise<void>
    }

/** The batch route of one service. */
export type Batch = {
  /**
   * `envelope` is the parsed body; `signal` says that the client has gone; `text` is the JSON that `envelope` was parsed
   * from, when it was JSON: the items' bodies are sent as they stand there.
   */
  begin(envelope: unknown, signal: AbortSignal, text?: string): Promise<BegunBatch>
}

/** Writes a line; a promise when the reader should be waited for. */
export type WriteLine = (line: Buffer) => Promise<void> | undefined

type Made = ItemAnswer | ItemError

const partOf = (made: Made): Part => ('content' in made ? answeredPart(made) : madePart(made))

/** In a batch that failed as a whole no item shows headers (recorded: `"headers":[]`). */
const validationPart = (item: PlannedItem): Part =>
  item.kind === 'refused' ? madePart({ ...item.error, fields: [] }) : nullPart

const madeBy = (item: PlannedItem, end: TaskEnd<Made> | undefined): Made => {
  if (item.kind === 'refused') return item.error
  if (end?.kind === 'finished') return end.result
  return itemError(end?.kind === 'unfinished' ? 'outcome_unknown' : 'not_sent')
}

/** Updates of posts and of tags take different times; a batch of several kinds is compared with others of several kinds. */
const workOf = (items: readonly PlannedItem[]): string => {
  const kinds = items.map((one) => one.kind === 'runnable' && `${one.order.method} ${one.order.collection}`)
  const [first = '', ...others] = new Set(kinds.filter((kind) => kind !== false))
  return others.length === 0 ? first : 'several'
}

/** What the run needs to know beyond its items, of a batch that uses extensions. */
const extendedOptions = (
  options: RunOptions,
  { extensions, waits, admitted }: PlannedBatch,
  mostBodyCharacters: number,
): RunOptions => {
  if (extensions === undefined) return options
  const dispatch = collapseReads(options.dispatch, waits)
  return {
    ...options,
    dispatch: withDependencies(dispatch, { extensions: extensions.items, admitted, mostBodyCharacters }),
  }
}

/** Builds the batch route of a service. */
export const createBatch = (options: BatchOptions): Batch => {
  const { clock, report } = options

  const run = async (
    planned: PlannedBatch,
    client: AbortSignal,
    startedMs: number,
    reader: ItemsRun['reader'],
  ): Promise<{ readonly result: BatchResult; readonly made: readonly Made[] }> => {
    const { items, waits } = planned
    const watch = stopWatch(client, options.deadlineMs)
    const leftMs = (): number =>
      options.deadlineMs > 0 ? startedMs + options.deadlineMs - clock.monotonic() : Number.POSITIVE_INFINITY
    const dispatch = honouringRetryAfter(options.dispatch, leftMs)
    const end = await runItems(extendedOptions({ ...options, dispatch }, planned, options.bodyCharacters), {
      items: items.map((item) => (item.kind === 'runnable' ? item.item : undefined)),
      waits,
      work: workOf(items),
      stop: watch.signal,
      isSingle: planned.isSingle,
      reader,
    })
    watch.release()
    await options.turn()
    const nowMs = clock.monotonic()
    const made = items.map((item, index) => {
      const taskEnd = end.items[index]
      const one = madeBy(item, taskEnd)
      const method = item.kind === 'runnable' ? item.item.method : item.method
      report(itemEvent({ method, status: one.status }, taskEnd, { batchStartedMs: startedMs, nowMs }))
      return one
    })
    const result: BatchResult = watch.reason() ?? 'ran'
    const batch = { result, items: items.length, durationMs: nowMs - startedMs }
    report(batchEvent(batch, { end: end.requests, waits }))
    return { result, made }
  }

  /** Lines of what is refused come first; then those of items, as they are answered; then of those that were not. */
  const lines = async (
    planned: PlannedBatch,
    client: AbortSignal,
    startedMs: number,
    write: WriteLine,
  ): Promise<void> => {
    const written = new Set<number>()
    let read: Promise<void> | undefined
    const tell = (index: number, made: Made): void => {
      written.add(index)
      read = write(itemLine(index, partOf(made)))
    }
    for (const [index, item] of planned.items.entries()) {
      if (item.kind === 'refused') tell(index, item.error)
    }
    const { result, made } = await run(planned, client, startedMs, {
      answered(index, one) {
        if (!client.aborted) tell(index, one)
      },
      async caughtUp(stop) {
        // Others may have been written in the meantime.
        while (read !== undefined && !stop.aborted) {
          const awaited = read
          await unlessStopped(awaited, stop)
          if (read === awaited) read = undefined
        }
        return !stop.aborted
      },
    })
    for (const [index, one] of made.entries()) if (!written.has(index)) tell(index, one)
    void write(lastLine(result, made.length))
  }

  const reportUnrun = (result: BatchResult, items: number, startedMs: number): void =>
    report(batchEvent({ result, items, durationMs: clock.monotonic() - startedMs }))

  const answered = (status: number, content: Buffer): BegunBatch => ({ kind: 'answered', status, content })

  return {
    async begin(envelope, signal, text) {
      const startedMs = clock.monotonic()
      await options.turn()
      const planned = planBatch(options, envelope, text)
      if (planned.kind === 'malformed') {
        reportUnrun('malformed', 0, startedMs)
        return answered(planned.status, Buffer.from(JSON.stringify(planned.body)))
      }
      const { items, waits, extensions } = planned
      if (planned.allMustValidate && items.some(({ kind }) => kind === 'refused')) {
        reportUnrun('validation', items.length, startedMs)
        return answered(207, envelopeOf(items.map(validationPart), 'validation'))
      }
      if (extensions?.dryRun === true) {
        reportUnrun('dry-run', items.length, startedMs)
        return answered(200, planAnswer(items, waits, extensions.items))
      }
      return {
        kind: 'running',
        whole: async () => {
          const { made } = await run(planned, signal, startedMs, undefined)
          return { status: 207, content: envelopeOf(made.map(partOf), undefined) }
        },
        lines: (write) => lines(planned, signal, startedMs, write),
      }
    },
  }
}
