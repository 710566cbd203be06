import pLimit from 'p-limit'
import { isJsonObject } from '../../http/json-text.ts'
import { targetOf } from '../../http/message.ts'
import {
  type BatchEntry,
  type BatchEnvelope,
  type EnvelopeItem,
  envelopeItem,
  invalidRequests,
  type Malformed,
  rawBodies,
} from '../envelope.ts'
import { type ExtensionsMode, type ItemExtension, isExtended, readExtensions } from '../extensions.ts'
import { type Admission, type BatchItem, type Dialect, type ItemError, shapedError } from '../item.ts'
import { type OrderFacts, planOrder, type Waits } from './plan-order.ts'

/** Names of the parameters an item sets, in query and body, down to the first bracket. */
const parametersOf = (item: BatchItem, bodyNames: readonly string[]): readonly string[] => {
  if (item.query === '') return bodyNames
  const inQuery = [...new URLSearchParams(item.query).keys()].map((name) => name.split('[', 1)[0] ?? '')
  return inQuery.concat(bodyNames)
}

export type PlanOptions = {
  readonly dialect: Dialect
  readonly extensions: ExtensionsMode
  readonly services: readonly string[]
  /** Most characters that a body may have once its references have become values. */
  readonly bodyCharacters: number
}

export type BatchInput = {
  readonly envelope: BatchEnvelope
  /** The JSON that `envelope` was parsed from, if it was JSON: the items' bodies are sent as they stand there. */
  readonly text: string | undefined
  /** Route match, `allow_batch` and validation, without running the item. `mayRead`: GET is allowed. */
  admit(item: BatchItem, mayRead: boolean): Admission
}

export type PlannedItem =
  | { readonly kind: 'runnable'; readonly item: BatchItem; readonly order: OrderFacts }
  | { readonly kind: 'refused'; readonly error: ItemError; readonly method: string | undefined }

export type PlannedBatch = {
  readonly kind: 'planned'
  readonly allMustValidate: boolean
  readonly items: readonly PlannedItem[]
  readonly waits: readonly Waits[]
  /** Undefined for a batch without extensions. */
  readonly extensions:
    | {
        readonly dryRun: boolean
        readonly items: readonly ItemExtension[]
        /** An item whose references have become values. */
        admitted(index: number, path: string, body: string | undefined): BatchItem | ItemError
      }
    | undefined
  isSingle(index: number): boolean
}

const credentialOf = ({ headers = {} }: BatchEntry): string | undefined => {
  const [, value] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'authorization') ?? []
  return typeof value === 'string' && /^[\x20-\x7e]{1,4096}$/.test(value) ? value : undefined
}

/** An item for another service, with that service's name and a credential for it. */
const addressed = (read: EnvelopeItem, entry: BatchEntry): EnvelopeItem => {
  const { service } = entry
  if (service === undefined || read.kind === 'faulty') return read
  return { ...read, item: { ...read.item, service, credential: credentialOf(entry) } }
}

/** Until its references have values, it is unknown what such an item touches. */
const unknownReach = (
  { method = 'POST', service }: BatchEntry,
  index: number,
): Extract<PlannedItem, { kind: 'runnable' }> => ({
  kind: 'runnable',
  item: { index, method, path: '', query: '', fields: {}, content: undefined, service },
  order: { collection: '', kind: '', itemId: undefined, method, parameters: [], service },
})

const withNeeds = (waits: Waits, needs: readonly number[], items: readonly PlannedItem[]): Waits => {
  if (waits === undefined) return undefined
  const runnable = needs.filter((index) => items[index]?.kind === 'runnable')
  return [...new Set([...waits, ...runnable])].sort((a, b) => a - b)
}

/** Reads a batch, and decides which of its items may run and in which order. */
export const planBatch = (
  options: PlanOptions,
  { envelope, text, admit }: BatchInput,
): PlannedBatch | Malformed => {
  const { requests } = envelope
  const isExtendedBatch = isExtended(options.extensions, envelope)
  const bodies = text === undefined ? [] : rawBodies(text)
  const entries = requests.map((entry, index) => envelopeItem(entry, index, bodies[index], options.dialect))

  const planItem = (read: EnvelopeItem): PlannedItem => {
    if (read.kind === 'faulty') return { kind: 'refused', error: read.error, method: undefined }
    const { item, bodyNames } = read
    const admission = admit(item, isExtendedBatch)
    if (admission.kind === 'runnable') {
      const { admitted, conflict } = admission
      const parameters = parametersOf(item, bodyNames)
      return { kind: 'runnable', item: { ...item, admitted }, order: { ...conflict, parameters } }
    }
    const { status, body, fields = [] } = admission
    return { kind: 'refused', error: { status, body, fields }, method: item.method }
  }
  const planned = (items: readonly PlannedItem[]): PlannedBatch => ({
    kind: 'planned',
    allMustValidate: envelope.validation === 'require-all-validate',
    items,
    waits: planOrder(items.map((item) => (item.kind === 'runnable' ? item.order : undefined))),
    extensions: undefined,
    isSingle: () => false,
  })
  if (!isExtendedBatch) return planned(entries.map(planItem))

  const bodyText = (index: number): string | undefined => {
    const body = requests[index]?.body
    return isJsonObject(body) ? (bodies[index] ?? JSON.stringify(body)) : undefined
  }
  const extensions = readExtensions(envelope, options.services, bodyText)
  if (typeof extensions === 'string') return invalidRequests(extensions)
  const items = requests.map((entry, index) =>
    extensions.items[index]?.template === undefined
      ? planItem(addressed(entries[index] as EnvelopeItem, entry))
      : unknownReach(entry, index),
  )
  const admitted = (index: number, path: string, body: string | undefined): BatchItem | ItemError => {
    const entry = { ...(requests[index] as BatchEntry), path }
    const whole = body === undefined ? entry : { ...entry, body: JSON.parse(body) as unknown }
    const item = planItem(addressed(envelopeItem(whole, index, body, options.dialect), entry))
    return item.kind === 'runnable' ? item.item : item.error
  }
  const plan = planned(items)
  return {
    ...plan,
    extensions: { ...extensions, admitted },
    waits: plan.waits.map((one, index) => withNeeds(one, extensions.items[index]?.needs ?? [], items)),
    isSingle: (index) => {
      const { needs, service } = extensions.items[index] as ItemExtension
      return needs.length > 0 || service !== undefined
    },
  }
}

/** One item in the answer to a dry run: the request that would be sent, or the error. */
const outlook = (item: PlannedItem, extension: ItemExtension | undefined, dialect: Dialect): object => {
  if (item.kind === 'refused') {
    const { status, body } = shapedError(dialect, item.error)
    return { runs: false, status, body }
  }
  const { method, path, query } = item.item
  // Path and body are known, and checked, when the items that they refer to have been answered.
  if (extension?.template !== undefined) return { runs: true, method, refersTo: extension.needs }
  return { runs: true, method, path: targetOf(path, query) }
}

/** The plan of a batch of which nothing runs: for each item whether it would run, and after which others. */
export const planAnswer = (
  items: readonly PlannedItem[],
  waits: readonly Waits[],
  extensions: readonly ItemExtension[],
  dialect: Dialect,
): Buffer => {
  const plan = items.map((item, index) => ({
    index,
    id: extensions[index]?.id,
    service: extensions[index]?.service,
    ...outlook(item, extensions[index], dialect),
    after: waits[index],
  }))
  return Buffer.from(JSON.stringify({ plan }))
}

/** How one task of a schedule ended. `started` and `ended` are times of the clock. */
export type TaskEnd<Result> =
  | {
      readonly kind: 'finished'
      readonly result: Result
      readonly startedMs: number
      readonly endedMs: number
    }
  /** Stopped before it began. */
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
  enter(index: number): Promise<boolean>
  /** Called once for each `enter` that gave true, when its task has ended. */
  leave(index: number): void
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
    if (stop.aborted || !(await schedule.enter(index))) return
    const startedMs = now()
    ends[index] = { kind: 'unfinished', startedMs }
    running += 1
    parallelism = Math.max(parallelism, running)
    const result = await schedule.run(index)
    running -= 1
    schedule.leave(index)
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
