import { isDelete, isPost } from '../../http/methods.ts'
import type { ItemOrder } from '../../service/contract.ts'
import type { ConflictFacts, ItemReach } from '../item.ts'

/** The facts of one item that decide its order: its path, and the parameters in its query and body. */
export type OrderFacts = ConflictFacts & { readonly parameters: readonly string[] }

/**
 * How far an item reaches:
 * `read` changes nothing, `update` only its own item, `claim` something that the items of a collection share
 * (slugs, order, counts, the next number), `everything` is unknown.
 */
type OrderReach = 'read' | 'update' | 'claim' | 'everything'

/** Nothing is known: every write claims, and no two collections are independent. */
export const unknownOrder: ItemOrder = {
  ownParameters: new Set(),
  flatCollections: new Set(),
  deletesReachEverything: new Set(),
  areIndependent: () => false,
}

/** `me`, a slug or an odd spelling could be any item. */
const isPlainId = (itemId: string | undefined): boolean =>
  itemId !== undefined && /^[1-9]\d{0,18}$/.test(itemId)

const reachOfWrite = (facts: OrderFacts, order: ItemOrder): OrderReach => {
  if (facts.kind === 'collection') return isPost(facts.method) ? 'claim' : 'everything'
  if (isDelete(facts.method))
    return order.deletesReachEverything.has(facts.collection) ? 'everything' : 'claim'
  return facts.parameters.every((name) => order.ownParameters.has(name)) ? 'update' : 'claim'
}

export const reachOf = (facts: OrderFacts, order: ItemOrder): OrderReach => {
  const isKnown = facts.kind === 'item' || facts.kind === 'collection'
  if (facts.collection === '' || !isKnown || facts.reach !== undefined) return 'everything'
  if (facts.kind === 'item' && !isPlainId(facts.itemId)) return 'everything'
  return facts.effect === 'write' ? reachOfWrite(facts, order) : 'read'
}

type Reaching = { readonly facts: OrderFacts; readonly reach: OrderReach }

/** A list, or a create: the new item may get the number that another one names, before or after. */
const isOnWholeCollection = ({ facts }: Reaching): boolean => facts.kind === 'collection'

/** Both in one collection and not the same item: can the result of one depend on the other? */
const meetInCollection = (earlier: Reaching, later: Reaching, order: ItemOrder): boolean => {
  if (isOnWholeCollection(earlier) || isOnWholeCollection(later)) return true
  const claims = [earlier, later].filter(({ reach }) => reach === 'claim').length
  return order.flatCollections.has(earlier.facts.collection) ? claims === 2 : claims > 0
}

/** One of them may change what the other shows. */
const meet = (reach: ItemReach, otherReach: ItemReach): boolean =>
  reach.changes.some((tag) => otherReach.shows.has(tag)) ||
  otherReach.changes.some((tag) => reach.shows.has(tag))

export const mustKeepOrder = (earlier: Reaching, later: Reaching, order: ItemOrder): boolean => {
  if (earlier.facts.reach !== undefined && later.facts.reach !== undefined)
    return meet(earlier.facts.reach, later.facts.reach)
  if (earlier.reach === 'everything' || later.reach === 'everything') return true
  if (earlier.reach === 'read' && later.reach === 'read') return false
  const earlierFacts = earlier.facts
  const laterFacts = later.facts
  if (earlierFacts.collection !== laterFacts.collection)
    return !order.areIndependent(earlierFacts.collection, laterFacts.collection)
  if (earlierFacts.itemId !== undefined && earlierFacts.itemId === laterFacts.itemId) return true
  return meetInCollection(earlier, later, order)
}
