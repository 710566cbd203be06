import {
  type BatchEvent,
  type BatchItemOutcome,
  type BatchMethod,
  type BatchResult,
  batchMethods,
} from './events.ts'
import { withDependencies } from './extensions.ts'
import {
  answeredPart,
  type BatchItem,
  type Dialect,
  type Dispatch,
  envelopeOf,
  type ItemAnswer,
  type ItemError,
  itemError,
  madePart,
  nullPart,
  type Part,
  shapedError,
} from './item.ts'
import {
  type BatchInput,
  type PlannedBatch,
  type PlannedItem,
  type PlanOptions,
  planAnswer,
  planBatch,
  type ScheduleEnd,
  type TaskEnd,
} from './order/plan-batch.ts'
import type { Waits } from './order/plan-order.ts'
import { honouringRetryAfter } from './send/chunk.ts'
import { type ItemSender, type ItemsRun, type RunOptions, runItems } from './send/run-items.ts'

/** In JSON a line end stands between tokens only (RFC 8259 §7), so a space may replace it. */
const onOneLine = (json: Buffer): Buffer => {
  if (!json.includes(10) && !json.includes(13)) return json
  const copy = Buffer.from(json)
  for (const [at, octet] of copy.entries()) if (octet === 10 || octet === 13) copy[at] = 32
  return copy
}

/** The line of one item; `part` is what stands in `responses` otherwise. */
const itemLine = (index: number, part: Part): Buffer =>
  Buffer.concat([Buffer.from(`{"index":${index},"response":`), ...part.map(onOneLine), Buffer.from('}\n')])

/** The last line. An answer without it has been cut off. */
const lastLine = (result: BatchResult, items: number): Buffer =>
  Buffer.from(`{"end":{"result":${JSON.stringify(result)},"items":${items}}}\n`)

const methodLabel = (method: string | undefined): BatchMethod =>
  batchMethods.find((known) => known === method) ?? '_OTHER'

const outcomeTable: Readonly<Record<TaskEnd<unknown>['kind'], BatchItemOutcome>> = {
  finished: 'answered',
  'not-begun': 'not-sent',
  unfinished: 'outcome-unknown',
}

/** The event of one item; `end` is undefined for one that was refused. */
const itemEvent = (
  item: { readonly method: string | undefined; readonly status: number },
  end: TaskEnd<unknown> | undefined,
  times: { readonly batchStartedMs: number; readonly nowMs: number },
): BatchEvent => {
  const startedMs = end === undefined || end.kind === 'not-begun' ? undefined : end.startedMs
  const endedMs = end?.kind === 'finished' ? end.endedMs : times.nowMs
  return {
    kind: 'batch-item-finished',
    method: methodLabel(item.method),
    outcome: end === undefined ? 'refused' : outcomeTable[end.kind],
    status: item.status,
    queuedSeconds: startedMs === undefined ? 0 : (startedMs - times.batchStartedMs) / 1000,
    durationSeconds: startedMs === undefined ? 0 : (endedMs - startedMs) / 1000,
  }
}

/** The event of a whole batch; without a schedule nothing ran. */
const batchEvent = (
  batch: { readonly result: BatchResult; readonly items: number; readonly durationMs: number },
  schedule?: {
    readonly end: ScheduleEnd<unknown>
    readonly waits: readonly (readonly number[] | undefined)[]
  },
): BatchEvent => {
  const spent = (schedule?.end.ends ?? []).map((end) =>
    end.kind === 'finished' ? end.endedMs - end.startedMs : 0,
  )
  return {
    kind: 'batch-finished',
    result: batch.result,
    items: batch.items,
    durationSeconds: batch.durationMs / 1000,
    itemSeconds: spent.reduce((sum, ms) => sum + ms, 0) / 1000,
    parallelism: schedule?.end.parallelism ?? 0,
    ordered: (schedule?.waits ?? []).filter((waits) => waits !== undefined && waits.length > 0).length,
  }
}

type StopReason = 'client-gone' | 'deadline'

/** Cancels the batch when its client disconnects, or at the deadline (0 = none). */
const cancelBatch = (client: AbortSignal, deadlineMs: number) => {
  const stop = new AbortController()
  let reason: StopReason | undefined
  const stopFor = (why: StopReason) => {
    reason ??= why
    stop.abort()
  }
  const gone = () => stopFor('client-gone')
  const timer = deadlineMs > 0 ? setTimeout(() => stopFor('deadline'), deadlineMs) : undefined
  client.addEventListener('abort', gone, { once: true })
  if (client.aborted) gone()
  return {
    signal: stop.signal,
    reason: () => reason,
    /** To be called when the batch has ended. */
    release() {
      clearTimeout(timer)
      client.removeEventListener('abort', gone)
    },
  }
}

/** Resolves with the promise, or with the stop. */
const unlessStopped = (promise: Promise<void>, stop: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      stop.removeEventListener('abort', over)
      resolve()
    }
    stop.addEventListener('abort', over, { once: true })
    void promise.then(over)
    if (stop.aborted) over()
  })

/** Equal reads after the same writes are sent once. */
const readKey = (item: BatchItem, waits: Waits): string =>
  JSON.stringify([item.service ?? '', item.path, item.query, item.fields, item.credential ?? '', waits])

/** Identical reads of a batch are one request: the first that begins is sent, and all get its answer. */
const collapseReads = (dispatch: Dispatch, waits: readonly Waits[]): Dispatch => {
  const begun = new Map<string, Promise<ItemAnswer>>()
  return (item, signal, stop) => {
    if (item.method !== 'GET' || item.content !== undefined) return dispatch(item, signal, stop)
    const key = readKey(item, waits[item.index])
    const known = begun.get(key)
    if (known !== undefined) return known
    const answer = dispatch(item, signal, stop)
    begun.set(key, answer)
    return answer
  }
}

/** Resolved settings of a service's batch route, and what its batches share. */
export type BatchOptions = RunOptions &
  PlanOptions & {
    /** For the whole batch; 0 = none. */
    readonly deadlineMs: number
  }

type BatchAnswer = { readonly status: number; readonly content: Buffer }

/** A batch that has been read: answered already, or about to run. */
type BegunBatch =
  | ({ readonly kind: 'answered' } & BatchAnswer)
  | {
      readonly kind: 'running'
      /** Runs it; the answer is the whole envelope. */
      whole(): Promise<BatchAnswer>
      /**
       * Runs it; every answer becomes a line at once, and the last line marks the end. No item begins while the promise of `write` is
       * pending.
       */
      lines(write: WriteLine): Promise<void>
    }

export type Batch = {
  begin(request: BatchRequest): Promise<BegunBatch>
}

export type BatchRequest = BatchInput & {
  readonly signal: AbortSignal
  readonly sender: ItemSender
}

/** Writes a line; a promise while the reader is behind. */
export type WriteLine = (line: Buffer) => Promise<void> | undefined

type Made = ItemAnswer | ItemError

const partIn =
  (dialect: Dialect) =>
  (made: Made): Part =>
    'content' in made ? answeredPart(made, dialect) : madePart(shapedError(dialect, made))

/** In a batch that failed as a whole no item shows headers (recorded: `"headers":[]`). */
const validationPart = (item: PlannedItem, dialect: Dialect): Part =>
  item.kind === 'refused' ? madePart({ ...shapedError(dialect, item.error), fields: [] }) : nullPart

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

/** The sender of a batch that uses extensions: equal reads are one request, and references become values. */
const extendedSender = (
  sender: ItemSender,
  { extensions, waits }: PlannedBatch,
  { bodyCharacters: mostBodyCharacters, dialect }: BatchOptions,
): ItemSender => {
  if (extensions === undefined) return sender
  const dispatch = collapseReads(sender.dispatch, waits)
  return {
    ...sender,
    dispatch: withDependencies(dispatch, {
      extensions: extensions.items,
      admitted: extensions.admitted,
      mostBodyCharacters,
      dialect,
    }),
  }
}

export const createBatch = (options: BatchOptions): Batch => {
  const { clock, report, dialect } = options
  const partOf = partIn(dialect)

  const run = async (
    planned: PlannedBatch,
    { signal, sender }: BatchRequest,
    startedMs: number,
    reader: ItemsRun['reader'],
  ): Promise<{ readonly result: BatchResult; readonly made: readonly Made[] }> => {
    const { items, waits } = planned
    const cancellation = cancelBatch(signal, options.deadlineMs)
    const leftMs = (): number =>
      options.deadlineMs > 0 ? startedMs + options.deadlineMs - clock.monotonic() : Number.POSITIVE_INFINITY
    const waiting = { ...sender, dispatch: honouringRetryAfter(sender.dispatch, leftMs) }
    const end = await runItems(options, extendedSender(waiting, planned, options), {
      items: items.map((item) => (item.kind === 'runnable' ? item.item : undefined)),
      waits,
      work: workOf(items),
      stop: cancellation.signal,
      isSingle: planned.isSingle,
      reader,
    })
    cancellation.release()
    await options.turn()
    const nowMs = clock.monotonic()
    const made = items.map((item, index) => {
      const taskEnd = end.items[index]
      const one = madeBy(item, taskEnd)
      const method = item.kind === 'runnable' ? item.item.method : item.method
      report(itemEvent({ method, status: one.status }, taskEnd, { batchStartedMs: startedMs, nowMs }))
      return one
    })
    const result: BatchResult = cancellation.reason() ?? 'ran'
    const batch = { result, items: items.length, durationMs: nowMs - startedMs }
    report(batchEvent(batch, { end: end.requests, waits }))
    return { result, made }
  }

  /** Refused items come first; then answered items, in the order of their responses; then the others. */
  const lines = async (
    planned: PlannedBatch,
    request: BatchRequest,
    startedMs: number,
    write: WriteLine,
  ): Promise<void> => {
    const written = new Set<number>()
    let read: Promise<void> | undefined
    const writeItem = (index: number, made: Made): void => {
      written.add(index)
      read = write(itemLine(index, partOf(made)))
    }
    for (const [index, item] of planned.items.entries()) {
      if (item.kind === 'refused') writeItem(index, item.error)
    }
    const { result, made } = await run(planned, request, startedMs, {
      answered(index, one) {
        if (!request.signal.aborted) writeItem(index, one)
      },
      async caughtUp(stop) {
        // More lines may have been written in the meantime.
        while (read !== undefined && !stop.aborted) {
          const awaited = read
          await unlessStopped(awaited, stop)
          if (read === awaited) read = undefined
        }
        return !stop.aborted
      },
    })
    for (const [index, one] of made.entries()) if (!written.has(index)) writeItem(index, one)
    void write(lastLine(result, made.length))
  }

  const reportUnrun = (result: BatchResult, items: number, startedMs: number): void =>
    report(batchEvent({ result, items, durationMs: clock.monotonic() - startedMs }))

  const answered = (status: number, content: Buffer): BegunBatch => ({ kind: 'answered', status, content })

  return {
    async begin(request) {
      const startedMs = clock.monotonic()
      await options.turn()
      const planned = planBatch(options, request)
      if (planned.kind === 'malformed') {
        reportUnrun('malformed', 0, startedMs)
        const { status, body } = shapedError(dialect, { ...planned, fields: [] })
        return answered(status, Buffer.from(JSON.stringify(body)))
      }
      const { items, waits, extensions } = planned
      if (planned.allMustValidate && items.some(({ kind }) => kind === 'refused')) {
        reportUnrun('validation', items.length, startedMs)
        return answered(
          207,
          envelopeOf(
            items.map((item) => validationPart(item, dialect)),
            'validation',
          ),
        )
      }
      if (extensions?.dryRun === true) {
        reportUnrun('dry-run', items.length, startedMs)
        return answered(200, planAnswer(items, waits, extensions.items, dialect))
      }
      return {
        kind: 'running',
        whole: async () => {
          const { made } = await run(planned, request, startedMs, undefined)
          return { status: 207, content: envelopeOf(made.map(partOf), undefined) }
        },
        lines: (write) => lines(planned, request, startedMs, write),
      }
    },
  }
}
