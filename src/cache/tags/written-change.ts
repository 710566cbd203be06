import { isDeepStrictEqual } from 'node:util'
import type { Found } from '../../contracts/finding.ts'
import type { NamedEffect, Refinement } from '../../contracts/site/refinements.ts'
import { earlyRefusals } from '../../contracts/site/refusals.ts'
import type { WriteResponse } from '../tagger.ts'
import type { DescribedItem } from './described-items.ts'

/** The item that a path is about: revisions and autosaves are parts of their parent. */
export const itemInPath = (found: Found): string | undefined => {
  const { id, parent } = found.pathParameters
  return parent ?? id
}

/** WordPress says with 501 that what it was asked to put into the trash has none: the one 5xx of which it is known that nothing was done. */
const hasNoTrash = ({ status, content }: WriteResponse): boolean =>
  status === 501 && content !== undefined && content.includes('"rest_trash_not_supported"')

/** Statuses of WordPress under which something may have been written before the refusal. */
const doubtful: ReadonlySet<number> = new Set([400, 401, 403, 409, 422])

type ErrorSaid = { readonly code?: unknown; readonly data?: { readonly key?: unknown } | null } | null

const errorIn = (content: Buffer): ErrorSaid => {
  try {
    return JSON.parse(content.toString('utf8')) as ErrorSaid
  } catch {
    return null
  }
}

/** Was it refused before anything was done? What is no error of WordPress comes from a server in front of it. */
const refusedEarly = ({ status, content }: WriteResponse): boolean => {
  if (!doubtful.has(status)) return true
  const error = content === undefined ? undefined : errorIn(content)
  // A meta key that may not be changed is named, and comes to light when all else is written.
  if (error?.data?.key !== undefined) return false
  // Without a user nothing was changed.
  if (status === 401) return true
  if (error === undefined) return false
  return typeof error?.code !== 'string' || earlyRefusals.has(error.code)
}

/** A refusal changed nothing when it came before anything was done; a success did; any other outcome is unknown. */
export const outcomeOf = (response: WriteResponse | undefined): 'done' | 'nothing' | 'unknown' => {
  if (response === undefined) return 'unknown'
  if (response.status >= 200 && response.status < 300) return 'done'
  if (response.status >= 400 && response.status < 500) return refusedEarly(response) ? 'nothing' : 'unknown'
  return hasNoTrash(response) ? 'nothing' : 'unknown'
}

type Properties = DescribedItem['properties']

/** An item before or after a write; undefined when unknown. */
export type ItemState = Properties | 'absent' | undefined

/**
 * How far a write can reach. `hidden`: only editors saw it before and see it now. `minor`: no list changed its members, but for
 * those that look at one of the `related` properties.
 */
export type Reach =
  | { readonly kind: 'full' }
  | { readonly kind: 'hidden'; readonly effects: readonly NamedEffect[] }
  | { readonly kind: 'minor'; readonly related: readonly string[] }

const full: Reach = { kind: 'full' }

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

const isEmpty = (value: unknown): boolean => typeof value !== 'string' || value.trim() === ''

const asRecord = (value: unknown): Properties | undefined => {
  // PHP has one spelling for an empty list and an empty object.
  if (Array.isArray(value)) return value.length === 0 ? {} : undefined
  return typeof value === 'object' && value !== null ? (value as Properties) : undefined
}

/** Is the change of a property one of its members that a minor update may change? */
const isWithin = (before: Properties, after: Properties, name: string, { within }: Refinement): boolean => {
  const members = within?.[name]
  const [was, is] = [asRecord(before[name]), asRecord(after[name])]
  if (members === undefined || was === undefined || is === undefined) return false
  const changed = [...Object.keys(was), ...Object.keys(is)].filter(
    (member) => !isDeepStrictEqual(was[member], is[member]),
  )
  return changed.every((member) => members.includes(member))
}

/** Everything that was shown before is as it was, but for texts and what only some lists look at. */
const compare = (before: Properties, after: Properties, refinement: Refinement): Reach => {
  const { structure, texts, related = {}, filled } = refinement
  if (filled !== undefined && isEmpty(propertyAt(before, filled))) return full
  const compared = [...structure, ...Object.keys(before).filter((name) => !texts.includes(name))]
  const changed = compared.filter(
    (path) => !same(before, after, path) && !isWithin(before, after, path, refinement),
  )
  if (!changed.every((name) => Object.hasOwn(related, name))) return full
  return { kind: 'minor', related: [...new Set(changed)] }
}

const revisionsIn = (state: Properties): unknown => {
  const [history] = asList(propertyAt(state, '_links.version-history'))
  const [last] = asList(propertyAt(state, '_links.predecessor-version'))
  const count = history?.['count']
  return typeof count === 'number' ? [count, last?.['id']] : undefined
}

const asList = (value: unknown): readonly (Properties | undefined)[] =>
  Array.isArray(value) ? value.map(asRecord) : []

/** Has the item the same revisions as before, by their number and the newest of them? */
export const keepsRevisions = (before: ItemState, after: ItemState): boolean => {
  if (before === 'absent' || after === 'absent' || before === undefined || after === undefined) return false
  const known = revisionsIn(before)
  return known !== undefined && isDeepStrictEqual(known, revisionsIn(after))
}

/**
 * Is what a search looks at as it was? The request must not name it and the revisions must be the same, since raw content can change
 * where the rendered one does not.
 */
export const keepsTexts = (
  before: ItemState,
  after: ItemState,
  given: readonly string[] | undefined,
  { searched }: Refinement,
): boolean => {
  if (searched === undefined || given === undefined || !keepsRevisions(before, after)) return false
  const { properties } = searched
  if (before === 'absent' || after === 'absent' || before === undefined || after === undefined) return false
  return properties.every((name) => !given.includes(name) && same(before, after, `${name}.rendered`))
}

/** Does the state say all that has to be compared? A trimmed answer does not. */
export const saysEnough = (state: Properties, { structure }: Refinement): boolean =>
  structure.every((path) => propertyAt(state, path) !== undefined)

const isGone = (state: Properties | 'absent'): boolean => state === 'absent' || state['status'] === 'trash'

/** What others depend on even if only editors see the item before and after; a new one has no others yet. */
const hiddenEffects = (
  before: Properties | 'absent',
  after: Properties | 'absent',
  { relatedHidden = {}, deletedHidden }: Refinement,
): readonly NamedEffect[] => {
  if (before === 'absent') return []
  const gone = isGone(after) && deletedHidden !== undefined ? [deletedHidden] : []
  if (after === 'absent') return gone
  const changed = Object.entries(relatedHidden).filter(([name]) => !same(before, after, name))
  return [...gone, ...changed.map(([, effect]) => effect)]
}

/** How far a change from one state to another reaches. */
export const reachOf = (before: ItemState, after: ItemState, refinement: Refinement | undefined): Reach => {
  if (refinement === undefined || before === undefined || after === undefined) return full
  if (refinement.hidden.length > 0 && isHidden(before, refinement) && isHidden(after, refinement)) {
    return { kind: 'hidden', effects: hiddenEffects(before, after, refinement) }
  }
  if (before === 'absent' || after === 'absent') return full
  return compare(before, after, refinement)
}

/** What shows a copy of something that has changed, or may have. */
export const copiesChanged = (
  before: ItemState,
  after: ItemState,
  { copied }: Refinement,
): readonly NamedEffect[] =>
  copied.flatMap(({ property, effect }) => {
    if (before === 'absent' || after === 'absent') return []
    const kept = before !== undefined && after !== undefined && same(before, after, property)
    return kept ? [] : effect
  })
