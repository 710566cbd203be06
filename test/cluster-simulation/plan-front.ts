import { oneOf, type Random } from '../support/random.ts'
import type { Action, WriteAction } from './plan.ts'
import { between } from './scene.ts'
import { items } from './services/interface.ts'

type Shape = { readonly endsAt: number; readonly slots: number }

const readAt = (random: Random, at: number, item: number, slot: number): Action => ({
  ...{ at, does: 'read-front', slot, item: random() < 0.4 ? 0 : item },
})

const writeAt = (at: number, slot: number, item: number): WriteAction => ({
  ...{ at, does: 'write', slot, item, verb: 'save', way: 'rest', fate: 'answered' },
})

const changedBy = (action: Action): readonly number[] => {
  if (action.does === 'write' || action.does === 'purge') return [action.item]
  return action.does === 'batch' ? items : []
}

/** Reads that are under way while what they show is changed: nothing of it is stored by then. */
const overtaken = (random: Random, at: number, item: number, { slots }: Shape): readonly Action[] => {
  const any = (): number => Math.floor(random() * slots)
  const again = at + between(random, 120, 250)
  const reads = Array.from({ length: 6 }, () => readAt(random, again - between(random, 0, 12), item, any()))
  return [
    ...reads,
    writeAt(again, any(), item),
    readAt(random, again + between(random, 100, 600), item, any()),
  ]
}

/** A receiver that refuses for about as long as a purge waits between two attempts, and a write that it confirms. */
const refused = (random: Random, at: number, { slots }: Shape): readonly Action[] => {
  const other = oneOf(random, items)
  const ms = oneOf(random, [30, 100, 250, 400])
  const does = random() < 0.7 ? 'front-refuses' : 'front-loses-responses'
  return [
    { at: at - between(random, 0, 10), does, ms },
    writeAt(at + between(random, 0, ms + 150), Math.floor(random() * slots), other),
  ]
}

/** A gateway that is cut off is asked, while another one writes. */
const behindCut = (
  random: Random,
  { at, ms, slot }: { readonly at: number; readonly ms: number; readonly slot: number },
  { slots }: Shape,
): readonly Action[] =>
  Array.from({ length: 4 }, () => {
    const item = oneOf(random, items)
    const writtenAt = at + between(random, 0, 1) * ms
    const writer = (slot + 1 + Math.floor(random() * Math.max(1, slots - 1))) % slots
    const reads = Array.from({ length: 5 }, () =>
      readAt(random, writtenAt - between(random, -5, 15), item, slot),
    )
    return [...reads, writeAt(writtenAt, writer, item)]
  }).flat()

/** Faults of what stands in front, and reads through it: near each write, and now and then. */
export const inFrontOf = (random: Random, actions: readonly Action[], shape: Shape): readonly Action[] => {
  const { endsAt, slots } = shape
  const any = (): number => Math.floor(random() * slots)
  const more: Action[] = []
  for (const action of actions) {
    const { at } = action
    if (action.does === 'partition') more.push(...behindCut(random, action, shape))
    const changed = changedBy(action)
    if (changed.length === 0) continue
    const item = oneOf(random, changed)
    for (let left = 6; left > 0; left -= 1)
      more.push(readAt(random, at + between(random, -60, 250), item, any()))
    if (random() < 0.15) more.push(...refused(random, at, shape))
    if (random() < 0.2) more.push(...overtaken(random, at, item, shape))
  }
  for (let at = between(random, 500, 1_000); at < endsAt; at += between(random, 20, 80))
    more.push(readAt(random, at, oneOf(random, items), any()))
  for (let at = between(random, 2_000, 8_000); at < endsAt; at += between(random, 1_000, 6_000))
    more.push({
      at,
      does: oneOf(random, ['front-refuses', 'front-loses-responses', 'front-restarts']),
      ms: oneOf(random, [20, 300, 1_500]),
    })
  return more
}
