import type { Clock } from '../../clock.ts'
import type { Pieces } from '../../http/bodies/turns.ts'
import { isDelete, isPost } from '../../http/methods.ts'
import type { ItemReading } from '../../service/contract.ts'
import type { ChunkResult, SplitReason } from '../events.ts'
import {
  type BatchEnvelope,
  type BatchItem,
  type ConflictFacts,
  type EnvelopeItem,
  envelopeItem,
  type ItemAdmission,
  type ItemError,
  type ItemReach,
  rawBodies,
} from '../item.ts'

/** What is sent as one upstream request: a single item, or several in one upstream batch. Members are in order. */
export type Unit = {
  readonly members: readonly number[]
  /** Smaller positions in the list of units that this one waits for. */
  readonly waits: readonly number[]
}

/** How a batch is split: the number of upstream batches, and the most items of one. */
type Cut = {
  readonly parts: SplitParts
  readonly maxItems: number
  /** May the item be part of an upstream batch? Otherwise its whole group is sent item by item. */
  isChunkable(index: number): boolean
}

type Group = readonly number[]

/** Every item is its own unit; waits become positions of units. */
const singleUnits = (indices: readonly number[], waits: readonly Waits[]): Unit[] => {
  const unitOf = new Map(indices.map((index, at) => [index, at]))
  return indices.map((index) => ({
    members: [index],
    waits: (waits[index] ?? []).flatMap((earlier) => unitOf.get(earlier) ?? []),
  }))
}

/** A group that is too long for one upstream batch: pieces in order, each after the one before it. */
const chainUnits = (group: Group, maxItems: number, offset: number): Unit[] => {
  const pieces: Unit[] = []
  for (let from = 0; from < group.length; from += maxItems) {
    const waits = pieces.length === 0 ? [] : [offset + pieces.length - 1]
    pieces.push({ members: group.slice(from, from + maxItems), waits })
  }
  return pieces
}

/** Largest groups first, each into the chunk that has least so far: close to even, and the same for the same input. */
const packed = (groups: readonly Group[], count: number, maxItems: number): number[][] => {
  const chunks: number[][] = Array.from({ length: count }, () => [])
  for (const group of [...groups].sort((a, b) => b.length - a.length)) {
    let min: number[] | undefined
    for (const chunk of chunks) {
      const fits = chunk.length + group.length <= maxItems
      if (fits && (min === undefined || chunk.length < min.length)) min = chunk
    }
    if (min === undefined) chunks.push([...group])
    else min.push(...group)
  }
  return chunks.filter(({ length }) => length > 0).map((chunk) => chunk.sort((a, b) => a - b))
}

/**
 * Cuts a batch into units that keep every wait: a group of items that wait for each other is never spread over chunks
 * that run side by side, and inside a chunk items run one after the other in the order of the batch.
 */
export const planUnits = (
  waits: readonly Waits[],
  groups: readonly Group[],
  { parts, maxItems, isChunkable }: Cut,
): readonly Unit[] => {
  const singly = parts === Number.POSITIVE_INFINITY
  const inChunks = singly ? [] : groups.filter((group) => group.every((index) => isChunkable(index)))
  const chunked = new Set(inChunks.flat())
  const single = groups.flat().filter((index) => !chunked.has(index))
  single.sort((a, b) => a - b)
  const units = singleUnits(single, waits)
  for (const long of inChunks.filter(({ length }) => length > maxItems)) {
    units.push(...chainUnits(long, maxItems, units.length))
  }
  const short = inChunks.filter(({ length }) => length <= maxItems)
  const count = Math.max(Math.min(parts, short.length), Math.ceil(short.flat().length / maxItems))
  for (const members of packed(short, count, maxItems)) units.push({ members, waits: [] })
  return units
}

/** The facts of one item that decide its order: its path, and the parameters in its query and body. */
export type OrderFacts = ConflictFacts & { readonly parameters: readonly string[] }

/**
 * How far an item reaches:
 * `read` changes nothing, `update` only its own item, `claim` something that the items of a collection share
 * (slugs, order, counts, the next number), `everything` is unknown.
 */
type OrderReach = 'read' | 'update' | 'claim' | 'everything'

/** Parameters that change nothing but the item itself. Anything else may be unique, counted or ordered in its collection. */
const ownParameters: ReadonlySet<string> = new Set([
  'id',
  'context',
  '_fields',
  'title',
  'content',
  'excerpt',
  'meta',
  'featured_media',
  'comment_status',
  'ping_status',
  'format',
  'template',
  'author',
  'description',
  'alt_text',
  'caption',
  'first_name',
  'last_name',
  'nickname',
])

/** Items of these do not form a tree, so that a claim of one is not seen in the others. */
const flatCollections: ReadonlySet<string> = new Set([
  'posts',
  'blocks',
  'navigation',
  'tags',
  'media',
  'users',
])

/** Collections that do not show each other's contents. Any other two are kept in order. */
const independentPairs: readonly (readonly [string, string])[] = [
  ['posts', 'pages'],
  ['posts', 'users'],
  ['pages', 'users'],
  ['pages', 'categories'],
  ['pages', 'tags'],
  ['categories', 'tags'],
  ['categories', 'users'],
  ['tags', 'users'],
]

const independent: ReadonlySet<string> = new Set(
  independentPairs.flatMap(([collection, otherCollection]) => [
    `${collection} ${otherCollection}`,
    `${otherCollection} ${collection}`,
  ]),
)

/** `me`, a slug or an odd spelling could be any item. */
const isPlainId = (itemId: string | undefined): boolean =>
  itemId !== undefined && /^[1-9]\d{0,18}$/.test(itemId)

const reachOfWrite = (facts: OrderFacts): OrderReach => {
  if (facts.kind === 'collection') return isPost(facts.method) ? 'claim' : 'everything'
  // Deleting a user hands the contents over to another one.
  if (isDelete(facts.method)) return facts.collection === 'users' ? 'everything' : 'claim'
  return facts.parameters.every((name) => ownParameters.has(name)) ? 'update' : 'claim'
}

const reachOf = (facts: OrderFacts): OrderReach => {
  const isKnown = facts.kind === 'item' || facts.kind === 'collection'
  if (facts.collection === '' || !isKnown || facts.reach !== undefined) return 'everything'
  if (facts.kind === 'item' && !isPlainId(facts.itemId)) return 'everything'
  return facts.effect === 'write' ? reachOfWrite(facts) : 'read'
}

type Reaching = { readonly facts: OrderFacts; readonly reach: OrderReach }

/** A list, or a create: the new item may get the number that another one names, before or after. */
const isOnWholeCollection = ({ facts }: Reaching): boolean => facts.kind === 'collection'

/** Both in one collection and not the same item: can the result of one depend on the other? */
const meetInCollection = (earlier: Reaching, later: Reaching): boolean => {
  if (isOnWholeCollection(earlier) || isOnWholeCollection(later)) return true
  const claims = [earlier, later].filter(({ reach }) => reach === 'claim').length
  return flatCollections.has(earlier.facts.collection) ? claims === 2 : claims > 0
}

/** One of them may change what the other shows. */
const meet = (reach: ItemReach, otherReach: ItemReach): boolean =>
  reach.changes.some((tag) => otherReach.shows.has(tag)) ||
  otherReach.changes.some((tag) => reach.shows.has(tag))

const mustKeepOrder = (earlier: Reaching, later: Reaching): boolean => {
  if (earlier.facts.reach !== undefined && later.facts.reach !== undefined)
    return meet(earlier.facts.reach, later.facts.reach)
  if (earlier.reach === 'everything' || later.reach === 'everything') return true
  if (earlier.reach === 'read' && later.reach === 'read') return false
  const earlierFacts = earlier.facts
  const laterFacts = later.facts
  if (earlierFacts.collection !== laterFacts.collection)
    return !independent.has(`${earlierFacts.collection} ${laterFacts.collection}`)
  if (earlierFacts.itemId !== undefined && earlierFacts.itemId === laterFacts.itemId) return true
  return meetInCollection(earlier, later)
}

/** The earlier items that one waits for; undefined for an item that does not run. */
export type Waits = readonly number[] | undefined

/**
 * For each item the positions of earlier ones that it waits for, so that the outcome is that of one after the other;
 * undefined marks an item that does not run. Identifiers that the upstream makes up may differ, as they do between clients.
 */
export const planOrder = (items: readonly (OrderFacts | undefined)[]): readonly Waits[] => {
  const reaching = items.map((facts) => (facts === undefined ? undefined : { facts, reach: reachOf(facts) }))
  return reaching.map((later, at) => {
    if (later === undefined) return undefined
    const waits: number[] = []
    for (const [index, earlier] of reaching.slice(0, at).entries()) {
      if (earlier !== undefined && mustKeepOrder(earlier, later)) waits.push(index)
    }
    return waits
  })
}

/**
 * Positions of the items that run, in groups: items that wait for each other, directly or indirectly, are in one group, in order.
 * Items of different groups never wait for each other.
 */
export const conflictGroups = (waits: readonly Waits[]): readonly (readonly number[])[] => {
  // Each item names its group by the first item of it that is known so far.
  const first: number[] = []
  const firstOf = (index: number): number => {
    let at = index
    for (let next = first[at] ?? at; next !== at; next = first[at] ?? at) at = next
    return at
  }
  for (const [index, earlier] of waits.entries()) {
    first[index] = index
    for (const earlierIndex of earlier ?? []) {
      const [low, high] = [firstOf(earlierIndex), firstOf(index)].sort((a, b) => a - b) as [number, number]
      first[high] = low
    }
  }
  const groups = new Map<number, number[]>()
  for (const [index, earlier] of waits.entries()) {
    if (earlier === undefined) continue
    const group = groups.get(firstOf(index))
    if (group === undefined) groups.set(firstOf(index), [index])
    else group.push(index)
  }
  return [...groups.values()]
}

/** How many upstream requests a batch becomes: 1 = it is sent whole; infinitely many = each item is a separate request. */
export type SplitParts = number

const singly: SplitParts = Number.POSITIVE_INFINITY

/** An upstream with the route loses it only by a change of its plugins, which is rare. */
const noRouteMs = 5 * 60_000
/** Long enough that an item that breaks an upstream batch does not cost the responses beside it again and again. */
const brokenMs = 30_000
const newestShare = 0.3

type SplitOptions = {
  readonly mode: 'item' | 'chunk' | 'whole' | 'auto'
  readonly concurrency: number
  /** Of one upstream batch. */
  readonly maxItems: number
  /** How long one upstream batch may take; 0 = no bound. */
  readonly maxChunkMs: number
  readonly clock: Clock
}

/** What a split depends on: items that will run, and groups of them that never wait for each other. */
type SplitInput = { readonly runnable: number; readonly groups: number }

export type BatchSplit = {
  readonly parts: SplitParts
  readonly reason: SplitReason
  /** Of one upstream batch. */
  readonly maxItems: number
}

/**
 * Decides how the batches of one service are sent, by a fixed rule: a second upstream batch at the same time saves almost half of the
 * time of one (docs/evidence/batch.md); a third one adds a start-up of the program and saves little.
 */
export class Splitter {
  readonly #options: SplitOptions
  #active = 0
  /** Milliseconds of an item in an upstream batch, a moving mean; undefined before the first. */
  #itemMs: number | undefined
  /** Until then the upstream is taken to have no batch route. */
  #noRouteUntilMs = Number.NEGATIVE_INFINITY
  /** Until then its batches are taken to break: one broken item costs the responses of all beside it. */
  #brokenUntilMs = Number.NEGATIVE_INFINITY

  constructor(options: SplitOptions) {
    this.#options = options
  }

  /** The split of a batch that begins; `ended` must follow. */
  begin(input: SplitInput): BatchSplit {
    this.#active += 1
    return { ...this.#decide(input), maxItems: this.#fittingItems() }
  }

  ended(): void {
    this.#active -= 1
  }

  chunkEnded(result: ChunkResult, items: number, ms: number): void {
    const now = this.#options.clock.monotonic()
    if (result === 'not-run') this.#noRouteUntilMs = now + noRouteMs
    if (result === 'broken') this.#brokenUntilMs = now + brokenMs
    if (result !== 'answered') return
    const before = this.#itemMs ?? ms / items
    this.#itemMs = before + newestShare * (ms / items - before)
  }

  #decide({ runnable, groups }: SplitInput): { readonly parts: SplitParts; readonly reason: SplitReason } {
    const { mode, clock, concurrency } = this.#options
    if (mode === 'item') return { parts: singly, reason: 'configured' }
    if (runnable <= (mode === 'chunk' ? 2 : 1)) return { parts: singly, reason: 'few-items' }
    if (clock.monotonic() < this.#noRouteUntilMs) return { parts: singly, reason: 'no-batch-route' }
    if (mode === 'auto' && clock.monotonic() < this.#brokenUntilMs)
      return { parts: singly, reason: 'broken-chunks' }
    if (mode === 'whole') return { parts: 1, reason: 'configured' }
    // Everything waits for something: nothing would run side by side.
    if (groups === 1) return { parts: 1, reason: 'one-group' }
    // Batches that are in flight together run side by side already.
    if (this.#active > 1) return { parts: 1, reason: 'beside-others' }
    return { parts: Math.min(2, concurrency), reason: 'two-parts' }
  }

  /** Items that fit into one upstream batch: the upstream's timeout runs while all of them are worked on. */
  #fittingItems(): number {
    const { maxItems, maxChunkMs } = this.#options
    if (this.#itemMs === undefined || maxChunkMs === 0) return maxItems
    return Math.max(1, Math.min(maxItems, Math.floor(maxChunkMs / this.#itemMs)))
  }
}

import pLimit from 'p-limit'

/** Names of the parameters an item sets, in query and body, down to the first bracket. */
const parametersOf = (item: BatchItem, bodyNames: readonly string[]): readonly string[] => {
  if (item.query === '') return bodyNames
  const inQuery = [...new URLSearchParams(item.query).keys()].map((name) => name.split('[', 1)[0] ?? '')
  return inQuery.concat(bodyNames)
}

export type PlanOptions = { readonly reading: ItemReading }

export type BatchInput = {
  readonly envelope: BatchEnvelope
  /** The JSON that `envelope` was parsed from, if it was JSON: the items' bodies are sent as they stand there. */
  readonly text: string | undefined
  /** Route match, `allow_batch` and validation, without running the item. */
  admit(item: BatchItem): Pieces<ItemAdmission>
}

export type PlannedItem =
  | { readonly kind: 'runnable'; readonly item: BatchItem; readonly order: OrderFacts }
  | { readonly kind: 'refused'; readonly error: ItemError; readonly method: string | undefined }

export type PlannedBatch = {
  readonly allMustValidate: boolean
  readonly items: readonly PlannedItem[]
  readonly waits: readonly Waits[]
}

/** Reads a batch, and decides which of its items may run and in which order. */
export function* planBatch(
  { reading }: PlanOptions,
  { envelope, text, admit }: BatchInput,
): Pieces<PlannedBatch> {
  function* planItem(entry: EnvelopeItem): Pieces<PlannedItem> {
    if (entry.kind === 'faulty') return { kind: 'refused', error: entry.error, method: undefined }
    const { item, bodyNames } = entry
    const admission = yield* admit(item)
    if (admission.kind === 'runnable') {
      const { admitted, conflict } = admission
      const parameters = parametersOf(item, bodyNames)
      return {
        kind: 'runnable',
        item: { ...item, effect: conflict.effect, admitted },
        order: { ...conflict, parameters },
      }
    }
    const { status, body, headers = [] } = admission
    return { kind: 'refused', error: { status, body, headers }, method: item.method }
  }
  const bodies = text === undefined ? [] : rawBodies(text)
  const items: PlannedItem[] = []
  for (const [index, entry] of envelope.requests.entries()) {
    yield
    items.push(yield* planItem(envelopeItem(entry, index, bodies[index], reading)))
  }
  yield
  return {
    allMustValidate: envelope.validation === 'require-all-validate',
    items,
    waits: planOrder(items.map((item) => (item.kind === 'runnable' ? item.order : undefined))),
  }
}

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
