import fc from 'fast-check'
import { expect, test } from 'vitest'
import { conflictGroups, planOrder, type Waits } from '../../../../src/batch/order/plan-order.ts'
import { planUnits, type Unit } from '../../../../src/batch/order/plan-units.ts'
import type { OrderFacts } from '../../../../src/batch/order/reach.ts'
import { siteItemOrder } from '../../../../src/wordpress/item-order.ts'

/**
 * A store with the couplings WordPress has: slugs are unique in a collection, pages form a tree whose links contain the
 * parents' slugs, posts show the slugs of their categories, categories count their posts, one list holds what is sticky.
 */
type Stored = { slug: string; title: string; parent: number; category: number }
type Store = {
  posts: Map<number, Stored>
  pages: Map<number, Stored>
  categories: Map<number, Stored>
  sticky: number[]
}
type Collection = 'posts' | 'pages' | 'categories'
type Operation = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  collection: Collection
  id?: number
  set: Partial<Stored> & { sticky?: boolean }
}

const seeded = (): Store => {
  const items = (parentOf: (id: number) => number) =>
    new Map(
      [1, 2, 3].map(
        (id) => [id, { slug: `s${id}`, title: `t${id}`, parent: parentOf(id), category: 1 }] as const,
      ),
    )
  return {
    posts: new Map(items(() => 0)),
    pages: new Map(items((id) => id - 1)),
    categories: new Map(items(() => 0)),
    sticky: [],
  }
}

const uniqueSlug = (items: Map<number, Stored>, wanted: string, self: number): string => {
  const taken = new Set([...items].filter(([id]) => id !== self).map(([, { slug }]) => slug))
  let slug = wanted
  for (let n = 2; taken.has(slug); n += 1) slug = `${wanted}-${n}`
  return slug
}

const link = (store: Store, id: number): string => {
  const page = store.pages.get(id)
  return page === undefined ? '' : `${link(store, page.parent)}/${page.slug}`
}

const shown = (store: Store, collection: Collection, id: number): unknown => {
  const item = store[collection].get(id)
  if (item === undefined) return 404
  switch (collection) {
    case 'posts':
      return {
        id,
        ...item,
        class: store.categories.get(item.category)?.slug,
        sticky: store.sticky.includes(id),
      }
    case 'pages':
      return { id, ...item, link: link(store, id) }
    case 'categories':
      return {
        id,
        ...item,
        count: [...store.posts.values()].filter(({ category }) => category === id).length,
      }
  }
}

const list = (store: Store, collection: Collection): unknown =>
  [...store[collection].keys()].map((id) => shown(store, collection, id))

const remove = (store: Store, collection: Collection, id: number): void => {
  const gone = store[collection].get(id)
  if (gone === undefined) return
  store[collection].delete(id)
  for (const page of store.pages.values())
    if (collection === 'pages' && page.parent === id) page.parent = gone.parent
}

/** Reads at its start and writes at its end, as a server process does: in between others may come. */
const begin = (store: Store, { method, collection, id, set }: Operation): (() => unknown) => {
  const items = store[collection]
  if (method === 'GET') {
    const response = id === undefined ? list(store, collection) : shown(store, collection, id)
    return () => response
  }
  if (method === 'DELETE') {
    const response = shown(store, collection, id ?? 0)
    return () => {
      remove(store, collection, id ?? 0)
      return response
    }
  }
  const self = id ?? Math.max(0, ...items.keys()) + 1
  const before = items.get(self)
  if (id !== undefined && before === undefined) return () => 404
  const { sticky, ...headers } = set
  const base = before ?? { slug: 'new', title: '', parent: 0, category: 1 }
  const claimed = headers.slug !== undefined || id === undefined
  const slug = claimed ? uniqueSlug(items, headers.slug ?? base.slug, self) : base.slug
  const stickyList =
    sticky === undefined
      ? undefined
      : sticky
        ? [...store.sticky, self]
        : store.sticky.filter((each) => each !== self)
  return () => {
    // A tree may have moved the item meanwhile: a page's parent is only written when it was asked for.
    const now = items.get(self) ?? base
    items.set(self, { ...now, ...headers, slug: claimed ? slug : now.slug })
    if (stickyList !== undefined) store.sticky = stickyList
    return shown(store, collection, self)
  }
}

const factsOf = ({ method, collection, id, set }: Operation): OrderFacts => ({
  method,
  effect: method === 'GET' ? 'read' : 'write',
  collection,
  kind: id === undefined ? 'collection' : 'item',
  itemId: id === undefined ? undefined : String(id),
  parameters: Object.keys(set),
})

const inOrder = (operations: readonly Operation[]): { answers: unknown[]; store: Store } => {
  const store = seeded()
  return { answers: operations.map((operation) => begin(store, operation)()), store }
}

/**
 * Runs as the scheduler may: a unit that has nothing left to wait for begins, one that has begun may end. Inside a unit
 * items run one after the other, each from its start to its end, and others may come in between. `choose` picks.
 */
const interleaved = (
  operations: readonly Operation[],
  unitsOf: (waits: readonly Waits[]) => readonly Unit[],
  choose: (n: number) => number,
): { answers: unknown[]; store: Store } => {
  const store = seeded()
  const units = unitsOf(planOrder(operations.map(factsOf), siteItemOrder))
  const responses: unknown[] = operations.map(() => undefined)
  const done: number[] = units.map(() => 0)
  const running = new Map<number, () => unknown>()
  const isOver = (at: number): boolean => done[at] === units[at]?.members.length
  while (!units.every((_, at) => isOver(at))) {
    const ready = units.flatMap(({ waits }, at) =>
      !isOver(at) && !running.has(at) && waits.every(isOver) ? [at] : [],
    )
    const moves = [...ready, ...running.keys()]
    const at = moves[choose(moves.length)] as number
    const index = units[at]?.members[done[at] as number] as number
    const end = running.get(at)
    if (end === undefined) running.set(at, begin(store, operations[index] as Operation))
    else {
      responses[index] = end()
      running.delete(at)
      done[at] = (done[at] as number) + 1
    }
  }
  return { answers: responses, store }
}

const operation: fc.Arbitrary<Operation> = fc
  .record({
    method: fc.constantFrom('GET', 'POST', 'PUT', 'PUT', 'DELETE'),
    collection: fc.constantFrom('posts', 'posts', 'pages', 'categories'),
    id: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined, freq: 4 }),
    set: fc.record(
      {
        title: fc.constantFrom('a', 'b'),
        slug: fc.constantFrom('x', 's1'),
        parent: fc.constantFrom(0, 1),
        category: fc.constantFrom(1, 2),
        sticky: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
  })
  .map(({ method, collection, id, set }) => {
    const creates = method === 'POST' || (id === undefined && method !== 'GET')
    if (creates) return { method: 'POST', collection, set } as Operation
    const named = id === undefined ? {} : { id }
    return { method, collection, ...named, set: method === 'PUT' ? set : {} } as Operation
  })
  // A cycle of parents is not what this is about.
  .filter(({ collection, set }) => collection !== 'pages' || set.parent === undefined)
  // Only posts are sticky.
  .filter(({ collection, set }) => collection === 'posts' || set.sticky === undefined)

const unitsCut =
  (parts: number, maxItems: number) =>
  (waits: readonly Waits[]): readonly Unit[] =>
    planUnits(waits, conflictGroups(waits), { parts, maxItems, mayShareRequest: (index) => index % 7 !== 6 })

const ways = fc.oneof(
  fc.constant(unitsCut(Number.POSITIVE_INFINITY, 25)),
  fc
    .record({ count: fc.integer({ min: 1, max: 4 }), maxItems: fc.integer({ min: 1, max: 8 }) })
    .map(({ count, maxItems }) => unitsCut(count, maxItems)),
)

test('every interleaving that the order allows, in items and in upstream batches, ends as one after the other would', () => {
  fc.assert(
    fc.property(
      fc.array(operation, { minLength: 2, maxLength: 8 }),
      fc.array(fc.nat(), { minLength: 16, maxLength: 16 }),
      ways,
      (operations, picks, unitsOf) => {
        let at = 0
        const choose = (n: number) => (picks[at++ % picks.length] as number) % n
        expect(interleaved(operations, unitsOf, choose)).toEqual(inOrder(operations))
      },
    ),
    { numRuns: 5_000 },
  )
})

test('a cut leaves out no item, takes none twice, and keeps within its bounds', () => {
  fc.assert(
    fc.property(
      fc.array(operation, { minLength: 1, maxLength: 25 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 10 }),
      (operations, count, maxItems) => {
        const waits = planOrder(operations.map(factsOf), siteItemOrder)
        const units = unitsCut(count, maxItems)(waits)
        const all = units.flatMap(({ members }) => members)
        expect([...all].sort((a, b) => a - b)).toEqual(operations.map((_, at) => at))
        for (const [at, { members, waits: earlier }] of units.entries()) {
          expect(members.length).toBeLessThanOrEqual(maxItems)
          expect(members).toEqual([...members].sort((a, b) => a - b))
          for (const one of earlier) expect(one).toBeLessThan(at)
        }
      },
    ),
  )
})

test('updates of the titles of 25 posts wait for nothing', () => {
  const items = Array.from({ length: 25 }, (_, i) =>
    factsOf({ method: 'PUT', collection: 'posts', id: i + 1, set: { title: 'x' } }),
  )
  expect(planOrder(items, siteItemOrder)).toEqual(Array(25).fill([]))
})
