import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, ownMember, parsedJson } from '../../http/json-text.ts'
import type { WriteResponse } from '../../service/tagger.ts'
import type { PropertyReaches } from '../routes/property-reaches.ts'
import type { NamedEffect, Refinement } from '../routes/refinements.ts'
import { integersOf, type Properties } from './described-items.ts'
import { earlyRefusals } from './uncacheable.ts'

/** WordPress sends this 501 if the collection has no trash: the only 5xx after which certainly nothing has changed. */
const hasNoTrash = ({ status, content }: WriteResponse): boolean =>
  status === 501 && content !== undefined && content.includes('"rest_trash_not_supported"')

/** Statuses that WordPress may send after a part of the change was made. */
const doubtful: ReadonlySet<number> = new Set([400, 401, 403, 409, 422])

type ErrorSaid = { readonly code?: unknown; readonly data?: { readonly key?: unknown } | null } | null

/** Was it refused before any change? Errors without WordPress's format come from a server in front of it. */
const refusedEarly = ({ status, content }: WriteResponse): boolean => {
  if (!doubtful.has(status)) return true
  const error = content && (parsedJson(content.toString()) as ErrorSaid | undefined)
  // A forbidden meta key is found only after everything else was saved.
  if (error?.data?.key !== undefined) return false
  // Without a user nothing has changed.
  if (status === 401) return true
  if (content === undefined) return false
  return typeof error?.code !== 'string' || earlyRefusals.has(error.code)
}

/** `nothing`: refused before any change. `done`: a success. All other outcomes are unknown. */
export const outcomeOf = (response: WriteResponse | undefined): 'done' | 'nothing' | 'unknown' => {
  if (response === undefined) return 'unknown'
  if (response.status >= 200 && response.status < 300) return 'done'
  if (response.status >= 400 && response.status < 500) return refusedEarly(response) ? 'nothing' : 'unknown'
  return hasNoTrash(response) ? 'nothing' : 'unknown'
}

/** An item before or after a write; undefined when unknown. */
export type ItemState = Properties | 'absent' | undefined

/**
 * What a write can change. `hidden`: only editors could and can see the item. `minor`: no list changed its members, except lists
 * that depend on one of the `related` properties.
 */
type Reach =
  | { readonly kind: 'full' }
  | { readonly kind: 'hidden'; readonly effects: readonly NamedEffect[] }
  | { readonly kind: 'minor'; readonly related: readonly string[] }

const full: Reach = { kind: 'full' }

const propertyAt = (properties: Properties, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((value, name) => (isJsonObject(value) ? ownMember(value, name) : undefined), properties)

const isHidden = (state: ItemState, { hidden }: Refinement): boolean => {
  if (state === 'absent') return true
  const status = state?.['status']
  return typeof status === 'string' && hidden.includes(status)
}

const same = (before: Properties, after: Properties, path: string): boolean => {
  const valueBefore = propertyAt(before, path)
  return valueBefore !== undefined && isDeepStrictEqual(valueBefore, propertyAt(after, path))
}

const isEmpty = (value: unknown): boolean => typeof value !== 'string' || value.trim() === ''

const asRecord = (value: unknown): Properties | undefined => {
  // PHP writes an empty list and an empty object alike.
  if (Array.isArray(value) && value.length === 0) return {}
  return isJsonObject(value) ? value : undefined
}

/** Did only members of the property change that a minor update may change? */
const isWithin = (before: Properties, after: Properties, name: string, { within }: Refinement): boolean => {
  const members = within?.[name]
  const [was, is] = [asRecord(before[name]), asRecord(after[name])]
  if (members === undefined || was === undefined || is === undefined) return false
  const changed = [...Object.keys(was), ...Object.keys(is)].filter(
    (member) => !isDeepStrictEqual(was[member], is[member]),
  )
  return changed.every((member) => members.includes(member))
}

/** Nothing differs except texts and properties that only some lists use. */
const compare = (
  before: Properties,
  after: Properties,
  refinement: Refinement,
  reachOfProperty: PropertyReaches['of'],
): Reach => {
  const { structure, texts, related = {}, filled } = refinement
  // `_fields` may have omitted lists from the earlier version: terms, such as those of a plugin.
  const omitted = Object.keys(after).filter(
    (name) => Array.isArray(after[name]) && before[name] === undefined,
  )
  if (filled !== undefined && isEmpty(propertyAt(before, filled))) return full
  const compared = [
    ...structure,
    ...[...Object.keys(before), ...omitted].filter((name) => !texts.includes(name)),
  ]
  const changed = compared.filter(
    (path) => !same(before, after, path) && !isWithin(before, after, path, refinement),
  )
  /** What a plugin has added decides about no list but under its own filters and orders. */
  const isAdded = (name: string): boolean =>
    !refinement.structure.includes(name) &&
    reachOfProperty(name, before) !== 'all' &&
    reachOfProperty(name, after) !== 'all'
  if (!changed.every((name) => Object.hasOwn(related, name) || isAdded(name))) return full
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

/** Does the item have the same number of revisions and the same newest one? */
export const keepsRevisions = (before: ItemState, after: ItemState): boolean => {
  if (before === 'absent' || after === 'absent' || before === undefined || after === undefined) return false
  const revisionsBefore = revisionsIn(before)
  return revisionsBefore !== undefined && isDeepStrictEqual(revisionsBefore, revisionsIn(after))
}

/**
 * Are the texts of a search unchanged? The request must not set them, and the revisions must be the same, because raw content can
 * change while the rendered content does not.
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

/** Does it have all properties to compare? A response with `_fields` does not. */
export const isComparable = (state: Properties, { structure }: Refinement): boolean =>
  structure.every((path) => propertyAt(state, path) !== undefined)

/** The terms of one kind that an item names. `none`: its type has no such terms; undefined: they are unknown. */
export const termsNamed = (
  state: ItemState,
  property: string,
  refinement: Refinement | undefined,
): readonly number[] | 'none' | undefined => {
  if (state === 'absent') return 'none'
  const value = state?.[property]
  if (Array.isArray(value) && value.length === 0) return []
  // `_fields` omits the guid too, unless it names it; a deleted item has it, but no links.
  const isWhole = state?.['guid'] !== undefined && refinement !== undefined && isComparable(state, refinement)
  return value === undefined && isWhole ? 'none' : integersOf(value)
}

const isGone = (state: Properties | 'absent'): boolean => state === 'absent' || state['status'] === 'trash'

/** Effects of a change that is visible to editors only; no response depends on a new item yet. */
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

/** The reach of a change from one version to another. */
export const reachOf = (
  before: ItemState,
  after: ItemState,
  refinement: Refinement | undefined,
  reachOfProperty: PropertyReaches['of'],
): Reach => {
  if (refinement === undefined || before === undefined || after === undefined) return full
  if (refinement.hidden.length > 0 && isHidden(before, refinement) && isHidden(after, refinement)) {
    return { kind: 'hidden', effects: hiddenEffects(before, after, refinement) }
  }
  if (before === 'absent' || after === 'absent') return full
  return compare(before, after, refinement, reachOfProperty)
}

/** What copies a property that has changed, or may have. */
export const copiesChanged = (
  before: ItemState,
  after: ItemState,
  { copied }: Refinement,
  /** Names of the arguments that the write gave, where they are known. */
  given?: readonly string[],
): readonly NamedEffect[] =>
  copied.flatMap(({ property, effect }) => {
    if (before === 'absent' || after === 'absent') return []
    if (given?.includes(property.split('.', 1)[0] ?? property) === false) return []
    const kept = before !== undefined && after !== undefined && same(before, after, property)
    return kept ? [] : effect
  })
