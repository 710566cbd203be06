import type { Clock } from '../clock.ts'
import { answeredPart, envelopeOf, madePart, nullPart } from './answer.ts'
import { type Place, readEnvelope } from './envelope.ts'
import type { BatchEvent, BatchResult } from './events.ts'
import type { Admission, BatchItem, ItemAnswer } from './item.ts'
import { type ItemError, itemError, thrownItemError } from './item-error.ts'
import { parametersOf } from './item-parameters.ts'
import { type OrderFacts, planOrder } from './plan-order.ts'
import { batchEvent, itemEvent } from './report-batch.ts'
import { runSchedule, type TaskEnd } from './schedule.ts'

/** Resolved settings of a service's batch route, and what it needs from others. */
export type BatchOptions = {
  readonly maxItems: number
  /** Items of one batch in flight. */
  readonly concurrency: number
  /** For the whole batch; 0 = none. */
  readonly deadlineMs: number
  readonly clock: Clock
  readonly report: (event: BatchEvent) => void
  /** Route match, `allow_batch` and validation, without running the item. */
  admit(item: BatchItem): Admission
  /** Runs the item like a request of its own, with the credentials of the batch; what it throws becomes the item's answer. */
  dispatch(item: BatchItem, signal: AbortSignal): Promise<ItemAnswer>
}

/** The answer to a batch. */
type BatchAnswer = { readonly status: number; readonly content: Buffer }

/** The batch route of one service. */
export type Batch = {
  /**
   * `envelope` is the parsed body; `signal` says that the client has gone; `text` is the JSON that `envelope` was parsed
   * from, when it was JSON: the items' bodies are sent as they stand there.
   */
  run(envelope: unknown, signal: AbortSignal, text?: string): Promise<BatchAnswer>
}

/** A place once it has been admitted. */
type Planned =
  | { readonly kind: 'runnable'; readonly item: BatchItem; readonly order: OrderFacts }
  | { readonly kind: 'refused'; readonly error: ItemError; readonly method: string | undefined }

const isWrite = (method: string): boolean => method !== 'GET' && method !== 'HEAD'

const jsonContent = (body: unknown): Buffer => Buffer.from(JSON.stringify(body))

/** What stops a batch before its end. */
type StopReason = 'client-gone' | 'deadline'

/** One signal for both reasons to stop; `release` when the batch is over. */
const stopWatch = (client: AbortSignal, deadlineMs: number) => {
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
    reason: (): StopReason | undefined => reason,
    release() {
      clearTimeout(timer)
      client.removeEventListener('abort', gone)
    },
  }
}

/** Builds the batch route of a service. */
export const createBatch = (options: BatchOptions): Batch => {
  const { clock, report } = options

  const plan = (place: Place): Planned => {
    if (place.kind === 'faulty') return { kind: 'refused', error: place.error, method: undefined }
    const { item } = place
    const admission = options.admit(item)
    if (admission.kind === 'runnable') {
      return { kind: 'runnable', item, order: { ...admission.conflict, parameters: parametersOf(item) } }
    }
    const { status, body, fields = [] } = admission
    return { kind: 'refused', error: { status, body, fields }, method: item.method }
  }

  /** A write that has begun is left to finish, so that its outcome is known to the cache; a read that nobody waits for is not. */
  const dispatch = async (item: BatchItem, stop: AbortSignal): Promise<ItemAnswer | ItemError> => {
    try {
      return await options.dispatch(item, isWrite(item.method) ? new AbortController().signal : stop)
    } catch (thrown) {
      return thrownItemError(thrown, isWrite(item.method))
    }
  }

  const runItems = async (
    planned: readonly Planned[],
    client: AbortSignal,
    startedMs: number,
  ): Promise<Buffer> => {
    const watch = stopWatch(client, options.deadlineMs)
    const waits = planOrder(planned.map((place) => (place.kind === 'runnable' ? place.order : undefined)))
    const end = await runSchedule<ItemAnswer | ItemError>({
      waits,
      concurrency: options.concurrency,
      run: async (index) => {
        const place = planned[index]
        if (place?.kind !== 'runnable') throw new RangeError('this place of the batch does not run')
        return dispatch(place.item, watch.signal)
      },
      stop: watch.signal,
      now: () => clock.monotonic(),
    })
    watch.release()
    const nowMs = clock.monotonic()
    const parts = planned.map((place, index) => {
      const taskEnd = end.ends[index]
      const made = madeBy(place, taskEnd)
      const method = place.kind === 'runnable' ? place.item.method : place.method
      const ran = place.kind === 'runnable' ? taskEnd : undefined
      report(itemEvent({ method, status: made.status }, ran, { batchStartedMs: startedMs, nowMs }))
      return 'content' in made ? answeredPart(made) : madePart(made)
    })
    const result = watch.reason() ?? 'ran'
    report(batchEvent({ result, items: planned.length, durationMs: nowMs - startedMs }, { end, waits }))
    return envelopeOf(parts, undefined)
  }

  const reportUnrun = (result: BatchResult, items: number, startedMs: number): void =>
    report(batchEvent({ result, items, durationMs: clock.monotonic() - startedMs }))

  return {
    async run(envelope, signal, text) {
      const startedMs = clock.monotonic()
      const read = readEnvelope(envelope, options.maxItems, text)
      if (read.kind === 'malformed') {
        reportUnrun('malformed', 0, startedMs)
        return { status: read.status, content: jsonContent(read.body) }
      }
      const planned = read.places.map(plan)
      if (read.allMustValidate && planned.some((place) => place.kind === 'refused')) {
        reportUnrun('validation', planned.length, startedMs)
        return { status: 207, content: envelopeOf(planned.map(validationPart), 'validation') }
      }
      return { status: 207, content: await runItems(planned, signal, startedMs) }
    },
  }
}

/** In a batch that failed as a whole no item shows headers (recorded: `"headers":[]`). */
const validationPart = (place: Planned): Buffer =>
  place.kind === 'refused' ? madePart({ ...place.error, fields: [] }) : nullPart

const madeBy = (place: Planned, end: TaskEnd<ItemAnswer | ItemError> | undefined): ItemAnswer | ItemError => {
  if (place.kind === 'refused') return place.error
  if (end?.kind === 'finished') return end.result
  return itemError(end?.kind === 'unfinished' ? 'outcome_unknown' : 'not_sent')
}
