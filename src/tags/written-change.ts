import { isDeepStrictEqual } from 'node:util'
import type { Refinement } from '../contracts/site/refinements.ts'
import type { DescribedItem } from './described-items.ts'

type Properties = DescribedItem['properties']

/** An item before or after a write; undefined when nobody knows. */
export type ItemState = Properties | 'absent' | undefined

/** How far a write can reach. `hidden`: nobody but editors saw it before or sees it now. `minor`: no list changed its members. */
export type Reach = 'full' | 'minor' | 'hidden'

const propertyAt = (properties: Properties, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, name)
          ? (value as Properties)[name]
          : undefined,
      properties,
    )

const isHidden = (state: ItemState, { hidden }: Refinement): boolean => {
  if (state === 'absent') return true
  const status = state?.['status']
  return typeof status === 'string' && hidden.includes(status)
}

const same = (before: Properties, after: Properties, path: string): boolean => {
  const known = propertyAt(before, path)
  return known !== undefined && isDeepStrictEqual(known, propertyAt(after, path))
}

/** Everything that was shown before is as it was, but for what a minor update may change. */
const isMinor = (before: Properties, after: Properties, { structure, texts }: Refinement): boolean =>
  structure.every((path) => same(before, after, path)) &&
  Object.keys(before).every((name) => texts.includes(name) || same(before, after, name))

/** Does the state say all that has to be compared? A trimmed answer does not. */
export const saysEnough = (state: Properties, { structure }: Refinement): boolean =>
  structure.every((path) => propertyAt(state, path) !== undefined)

/** How far a change from one state to another reaches. */
export const reachOf = (before: ItemState, after: ItemState, refinement: Refinement | undefined): Reach => {
  if (refinement === undefined || before === undefined || after === undefined) return 'full'
  if (refinement.hidden.length > 0 && isHidden(before, refinement) && isHidden(after, refinement)) {
    return 'hidden'
  }
  if (before === 'absent' || after === 'absent') return 'full'
  return isMinor(before, after, refinement) ? 'minor' : 'full'
}

/** Collections that show a copy of something that has changed, or may have. */
export const copiesChanged = (
  before: ItemState,
  after: ItemState,
  { copied }: Refinement,
): readonly string[] =>
  copied.flatMap(({ property, collections }) => {
    if (before === 'absent' || after === 'absent') return []
    const kept = before !== undefined && after !== undefined && same(before, after, property)
    return kept ? [] : collections
  })
