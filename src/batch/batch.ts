import { answeredPart, envelopeOf, madePart, nullPart } from './answer.ts'
import { type Place, readEnvelope } from './envelope.ts'
import type { BatchResult } from './events.ts'
import type { Admission, BatchItem, ItemAnswer } from './item.ts'
import { type ItemError, itemError } from './item-error.ts'
import { parametersOf } from './item-parameters.ts'
import { type OrderFacts, planOrder } from './plan-order.ts'
import { batchEvent, itemEvent } from './report-batch.ts'
import { type RunOptions, runItems } from './run-items.ts'
import type { TaskEnd } from './schedule.ts'
import { stopWatch } from './stop-watch.ts'

/** Resolved settings of a service's batch route, and what it needs from others. */
export type BatchOptions = RunOptions & {
  readonly maxItems: number
  /** For the whole batch; 0 = none. */
  readonly deadlineMs: number
  /** Route match, `allow_batch` and validation, without running the item. */
  admit(item: BatchItem): Admission
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

const jsonContent = (body: unknown): Buffer => Buffer.from(JSON.stringify(body))

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

  const run = async (
    planned: readonly Planned[],
    client: AbortSignal,
    startedMs: number,
  ): Promise<Buffer> => {
    const watch = stopWatch(client, options.deadlineMs)
    const waits = planOrder(planned.map((place) => (place.kind === 'runnable' ? place.order : undefined)))
    const items = planned.map((place) => (place.kind === 'runnable' ? place.item : undefined))
    const end = await runItems(options, items, waits, watch.signal)
    watch.release()
    const nowMs = clock.monotonic()
    const parts = planned.map((place, index) => {
      const taskEnd = end.items[index]
      const made = madeBy(place, taskEnd)
      const method = place.kind === 'runnable' ? place.item.method : place.method
      report(itemEvent({ method, status: made.status }, taskEnd, { batchStartedMs: startedMs, nowMs }))
      return 'content' in made ? answeredPart(made) : madePart(made)
    })
    const result: BatchResult = watch.reason() ?? 'ran'
    const batch = { result, items: planned.length, durationMs: nowMs - startedMs }
    report(batchEvent(batch, { end: end.requests, waits }))
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
      return { status: 207, content: await run(planned, signal, startedMs) }
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
