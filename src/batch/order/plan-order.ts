import type { ConflictFacts, ItemReach } from '../item.ts'
import type { SplitParts } from '../split.ts'

/** What is sent as one upstream request: a single item, or several in one upstream batch. Members are in order. */
export type Unit = {
  readonly members: readonly number[]
  /** Smaller positions in the list of units that this one waits for. */
  readonly waits: readonly number[]
}

/** How a batch is split: the number of upstream batches, and the most items of one. */
type Cut = {
  readonly parts: SplitParts
  readonly mostItems: number
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
const chainUnits = (group: Group, mostItems: number, offset: number): Unit[] => {
  const pieces: Unit[] = []
  for (let from = 0; from < group.length; from += mostItems) {
    const waits = pieces.length === 0 ? [] : [offset + pieces.length - 1]
    pieces.push({ members: group.slice(from, from + mostItems), waits })
  }
  return pieces
}

/** Largest groups first, each into the chunk that has least so far: close to even, and the same for the same input. */
const packed = (groups: readonly Group[], count: number, mostItems: number): number[][] => {
  const chunks: number[][] = Array.from({ length: count }, () => [])
  for (const group of [...groups].sort((a, b) => b.length - a.length)) {
    let least: number[] | undefined
    for (const chunk of chunks) {
      const fits = chunk.length + group.length <= mostItems
      if (fits && (least === undefined || chunk.length < least.length)) least = chunk
    }
    if (least === undefined) chunks.push([...group])
    else least.push(...group)
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
  { parts, mostItems, isChunkable }: Cut,
): readonly Unit[] => {
  const singly = parts === Number.POSITIVE_INFINITY
  const inChunks = singly ? [] : groups.filter((group) => group.every((index) => isChunkable(index)))
  const chunked = new Set(inChunks.flat())
  const single = groups.flat().filter((index) => !chunked.has(index))
  single.sort((a, b) => a - b)
  const units = singleUnits(single, waits)
  for (const long of inChunks.filter(({ length }) => length > mostItems)) {
    units.push(...chainUnits(long, mostItems, units.length))
  }
  const short = inChunks.filter(({ length }) => length <= mostItems)
  const count = Math.max(Math.min(parts, short.length), Math.ceil(short.flat().length / mostItems))
  for (const members of packed(short, count, mostItems)) units.push({ members, waits: [] })
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
  independentPairs.flatMap(([one, other]) => [`${one} ${other}`, `${other} ${one}`]),
)

/** `me`, a slug or an odd spelling could be any item. */
const isPlainId = (itemId: string | undefined): boolean =>
  itemId !== undefined && /^[1-9]\d{0,18}$/.test(itemId)

const reachOfWrite = (facts: OrderFacts): OrderReach => {
  if (facts.kind === 'collection') return facts.method === 'POST' ? 'claim' : 'everything'
  // Deleting a user hands the contents over to another one.
  if (facts.method === 'DELETE') return facts.collection === 'users' ? 'everything' : 'claim'
  return facts.parameters.every((name) => ownParameters.has(name)) ? 'update' : 'claim'
}

const reachOf = (facts: OrderFacts): OrderReach => {
  const known = facts.kind === 'item' || facts.kind === 'collection'
  if (facts.collection === '' || !known || facts.reach !== undefined) return 'everything'
  if (facts.kind === 'item' && !isPlainId(facts.itemId)) return 'everything'
  return facts.method === 'GET' || facts.method === 'HEAD' ? 'read' : reachOfWrite(facts)
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
const meet = (one: ItemReach, other: ItemReach): boolean =>
  one.changes.some((tag) => other.shows.has(tag)) || other.changes.some((tag) => one.shows.has(tag))

const mustKeepOrder = (earlier: Reaching, later: Reaching): boolean => {
  if (earlier.facts.reach !== undefined && later.facts.reach !== undefined)
    return meet(earlier.facts.reach, later.facts.reach)
  if (earlier.reach === 'everything' || later.reach === 'everything') return true
  if (earlier.reach === 'read' && later.reach === 'read') return false
  const one = earlier.facts
  const other = later.facts
  if (one.collection !== other.collection) return !independent.has(`${one.collection} ${other.collection}`)
  if (one.itemId !== undefined && one.itemId === other.itemId) return true
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
    for (const one of earlier ?? []) {
      const [low, high] = [firstOf(one), firstOf(index)].sort((a, b) => a - b) as [number, number]
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
