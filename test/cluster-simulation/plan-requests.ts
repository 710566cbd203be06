import { oneOf, type Random } from '../support/random.ts'
import type { BatchEntry, BatchPlan } from './client-batches.ts'
import type { MemberSettings } from './member-settings.ts'
import type { Action, WriteAction } from './plan.ts'
import { items, type Verb, type Way } from './services/interface.ts'
import type { WriteFate } from './upstream.ts'

const verbOf = (random: Random): Verb => {
  const chance = random()
  if (chance < 0.2) return 'delete'
  return chance < 0.45 ? 'publish' : 'save'
}

const wayOf = (random: Random, { hasGraphql }: MemberSettings): Way => {
  if (!hasGraphql || random() < 0.6) return 'rest'
  return random() < 0.9 ? 'graphql' : 'graphql-get'
}

/** Of an item of a batch: its content and its response are read whole. */
const itemFates: readonly WriteFate[] = ['failed', 'refused', 'lost', 'repeated', 'dropped', 'late']

const entryOf = (random: Random, item: number): BatchEntry => {
  if (random() < 0.3) return { reads: random() < 0.7 ? item : 0 }
  const fate = random() < 0.75 ? 'answered' : oneOf(random, itemFates)
  return { item, verb: verbOf(random), way: 'rest', fate }
}

/** The write, and what else goes with it, some of the same item. */
const batchWith = (random: Random, { item, verb, fate }: WriteAction): BatchPlan => {
  const first: BatchEntry = { item, verb, way: 'rest', fate: fate === 'partial' ? 'lost' : fate }
  const others = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
    entryOf(random, random() < 0.4 ? item : oneOf(random, items)),
  )
  if (random() < 0.3) others.unshift({ reads: item }, { ...first, fate: 'answered' }, { reads: item })
  const place = Math.floor(random() * (others.length + 1))
  const entries = [...others.slice(0, place), first, ...others.slice(place)]
  const leavesAfterMs = random() < 0.08 ? random() * 30 : undefined
  return { entries, isRepeated: leavesAfterMs === undefined && random() < 0.25, leavesAfterMs }
}

/** What is written, and by which interface: the plan says when, by whom, and what happens to it. */
export const withRequests = (
  random: Random,
  settings: MemberSettings,
  actions: readonly Action[],
): readonly Action[] =>
  actions.map((action): Action => {
    // Each caller has spellings of its own of the one list.
    if (action.does === 'purge' && settings.contract === 'plants') return { ...action, what: 'all' }
    if (action.does !== 'write') return action
    const write = { ...action, verb: verbOf(random), way: wayOf(random, settings) }
    if (settings.contract === 'open' || write.way !== 'rest' || random() < 0.65) return write
    const { at, slot } = action
    return { at, slot, does: 'batch', ...batchWith(random, write) }
  })
