import type { Found } from '../../contracts/finding.ts'
import type { NamedEffect } from '../../contracts/site/refinements.ts'
import { type CollectionTags, namedBy, type WriteAction } from '../../contracts/site/tags.ts'
import type { Shown, WriteResponse } from '../tagger.ts'
import { type DescribedItem, type Description, describeItems } from './described-items.ts'
import { integersOf } from './list-filter.ts'
import type { TagNames } from './tag-names.ts'
import {
  copiesChanged,
  type ItemState,
  itemInPath,
  minor,
  type Reach,
  reachOf,
  saysEnough,
} from './written-change.ts'

/** A write that was carried out, or may have been: then there is no response. */
export type Write = {
  readonly found: Found
  readonly collection: string
  readonly entry: CollectionTags
  readonly action: WriteAction
  readonly response: WriteResponse | undefined
  readonly shown: Shown
}

/** One item before and after. */
type Change = { readonly before: ItemState; readonly after: ItemState }

const nobodyKnows: Change = { before: undefined, after: undefined }

const onlyItem = (description: Description | undefined): DescribedItem | undefined =>
  description?.items?.length === 1 ? description.items[0] : undefined

/** Stored answers looked into for the state before: any of them will do. */
const mostLookedInto = 8

/** Autosaves are kept beside an item, and what it shows of them are links; a draft may take their texts over. */
const isAutosave = ({ found, entry }: Write): boolean =>
  found.row.kind === 'autosaves' && entry.refinement !== undefined

export const createWrittenTags = (names: TagNames): ((write: Write) => readonly string[]) => {
  const stateBefore = ({ collection, entry, shown }: Write, tag: string): ItemState => {
    const { refinement } = entry
    if (refinement === undefined) return undefined
    for (const content of shown(tag).slice(0, mostLookedInto)) {
      const items = describeItems(content, collection).items ?? []
      const found = items.find((item) => names.item(item.collection, item.id) === tag)
      if (found !== undefined && saysEnough(found.properties, refinement)) return found.properties
    }
    return undefined
  }

  const changeOf = (write: Write, description: Description | undefined): Change => {
    const { found, collection, response } = write
    const item = onlyItem(description)
    if (item?.collection !== collection) return nobodyKnows
    if (found.row.kind === 'collection') {
      return response?.status === 201 ? { before: 'absent', after: item.properties } : nobodyKnows
    }
    const tag = names.item(collection, item.id)
    const inPath = itemInPath(found)
    if (found.row.kind !== 'item' || tag === undefined || inPath === undefined) return nobodyKnows
    if (names.item(collection, inPath) !== tag) return nobodyKnows
    if (description?.deleted === true) return { before: item.properties, after: 'absent' }
    return { before: stateBefore(write, tag), after: item.properties }
  }

  /** The lists under a filter by one of these properties that hold an item in that state. */
  const filteredLists = (
    { collection, entry }: Write,
    state: ItemState,
    properties?: readonly string[],
  ): readonly string[] => {
    if (state === undefined || state === 'absent') return []
    const filters = entry.filters.filter(({ property }) => properties?.includes(property) ?? true)
    return filters.flatMap(({ property }) => {
      const value = state[property]
      if (Array.isArray(value) && value.length === 0) return []
      const values = value === undefined ? undefined : integersOf(value)
      return values === undefined
        ? [names.filteredBy(collection, property)]
        : values.map((one) => names.filtered(collection, property, one))
    })
  }

  /** Lists for editors that may show an item in one of these states. */
  const innerLists = (collection: string, states: readonly ItemState[]): readonly string[] => {
    const statuses = states.map((state) => (state === 'absent' ? 'any' : state?.['status']))
    const known = statuses.filter((status) => typeof status === 'string')
    if (known.length < statuses.length) return [names.inner(collection)]
    return ['any', ...known].map((status) => names.innerOf(collection, status))
  }

  /** All lists that may lose, gain or move it, and those of which that is not known. */
  const listsOf = (
    write: Write,
    { before, after }: Change,
    items: readonly DescribedItem[],
  ): readonly string[] => {
    const { collection } = write
    const states = after === undefined ? items.map(({ properties }) => properties) : [before, after]
    const tags = [names.list(collection), names.text(collection), ...innerLists(collection, [before, after])]
    if (before === undefined) tags.push(names.unsure(collection))
    return [...tags, ...states.flatMap((state) => filteredLists(write, state))]
  }

  /** The item and its parts; undefined when nobody knows which it was. */
  const itemsOf = (
    { found, collection }: Write,
    items: readonly DescribedItem[],
  ): readonly string[] | undefined => {
    const path = itemInPath(found)
    const inPath = path === undefined ? [] : [names.item(collection, path)]
    const all = [...inPath, ...items.map(({ id }) => names.item(collection, id))]
    const known = all.filter((tag) => tag !== undefined)
    return known.length === all.length ? known : undefined
  }

  const contentTags = (contents: NamedEffect['contents'], collection: string): readonly string[] => {
    switch (contents) {
      case 'none':
        return []
      case 'dynamic':
        return [names.dynamic, names.dynamicOf(collection)]
      case 'styled':
        return [names.styled, names.dynamic]
      case 'any':
        return [names.rendered]
    }
  }

  /** Answers of items that name the written ones by their ids; of any that name others when it is not known which were written. */
  const shownByTags = (collection: string, items: readonly DescribedItem[]): readonly string[] => {
    const known = items.map(({ id }) => names.shownBy(collection, id)).filter((tag) => tag !== undefined)
    if (known.length === 0 || known.length < items.length) return (namedBy[collection] ?? []).map(names.any)
    return [names.shownBySome(collection), ...known]
  }

  const effectTags = (
    effect: NamedEffect,
    { collection }: Write,
    items: readonly DescribedItem[],
  ): readonly string[] => {
    const tags = effect.collections.map((other) => names.any(other))
    if (effect.siblings) tags.push(names.any(collection))
    if (effect.embedded) tags.push(names.embedded)
    if (effect.shownBy) tags.push(...shownByTags(collection, items))
    for (const lists of effect.filteredBy) {
      tags.push(names.related(lists.collection), names.filteredBy(lists.collection, lists.property))
    }
    return [...tags, ...contentTags(effect.contents, collection), names.opaque, names.unknown]
  }

  /** What owns an item in that state; undefined when it does not say so. */
  const ownersOf = ({ entry }: Write, state: ItemState): readonly string[] | undefined => {
    if (entry.owners === undefined || state === undefined || state === 'absent') return undefined
    const tags: string[] = []
    for (const { property, collections } of entry.owners) {
      const [owner] = integersOf(state[property]) ?? []
      if (owner === undefined) return undefined
      tags.push(...collections.flatMap((one) => names.item(one, String(owner)) ?? []))
    }
    return tags
  }

  /** A new item shows in its owners only, and so did one that is gone: these are named, instead of all that could be owners. */
  const ownedTags = (
    write: Write,
    { before, after }: Change,
    items: readonly DescribedItem[],
  ): readonly string[] | undefined => {
    const { entry } = write
    const isNew = before === 'absent'
    const effect = entry.effects[isNew ? 'create' : 'delete']
    if (effect === 'everything' || (!isNew && after !== 'absent')) return undefined
    const owners = ownersOf(write, isNew ? after : before)
    if (owners === undefined) return undefined
    const owned = new Set(entry.owners?.flatMap(({ collections }) => collections))
    const collections = effect.collections.filter((one) => !owned.has(one))
    // What hung on one that is gone hangs on another.
    const siblings = effect.siblings && !isNew
    return [...owners, ...effectTags({ ...effect, collections, siblings, embedded: false }, write, items)]
  }

  /** What owns it after an update, which may have moved it there. */
  const newOwners = (write: Write, { after }: Change): readonly string[] => {
    const { action, entry } = write
    if (action !== 'update' || entry.owners === undefined) return []
    return ownersOf(write, after) ?? entry.owners.flatMap(({ collections }) => collections.map(names.any))
  }

  const fullTags = (write: Write, change: Change, items: readonly DescribedItem[]): readonly string[] => {
    const { collection, entry, action } = write
    const own = items.length === 0 ? undefined : itemsOf(write, items)
    const lists = own === undefined ? [names.any(collection)] : [...own, ...listsOf(write, change, items)]
    const owned = ownedTags(write, change, items)
    if (owned !== undefined) return [...lists, ...owned]
    const effect = (write.found.row.kind === 'action' ? entry.action : undefined) ?? entry.effects[action]
    if (effect === 'everything') return [names.all]
    return [...lists, ...newOwners(write, change), ...effectTags(effect, write, items)]
  }

  return (write) => {
    const { collection, entry, response } = write
    const { refinement } = entry
    const description =
      response?.content === undefined ? undefined : describeItems(response.content, collection)
    const items = (description?.items ?? []).filter((item) => item.collection === collection)
    const change = changeOf(write, description)
    const { before, after } = change
    const autosave = isAutosave(write) && response !== undefined
    const reach: Reach = autosave ? minor : reachOf(before, after, refinement)
    const own = itemsOf(write, items)
    if (refinement === undefined || reach.kind === 'full' || own === undefined) {
      return fullTags(write, change, items)
    }
    const copies = copiesChanged(before, after, refinement)
    const copied = copies.flatMap((effect) => effectTags(effect, write, items))
    if (reach.kind === 'hidden') {
      return [...own, ...innerLists(collection, [before, after]), ...copied, names.opaque, names.unknown]
    }
    const { related } = reach
    const effects = [
      ...(autosave ? [] : [refinement.minor]),
      ...related.flatMap((name) => refinement.related?.[name] ?? []),
    ]
    return [
      ...own,
      names.text(collection),
      ...(related.length === 0 ? [] : [names.related(collection)]),
      ...[before, after].flatMap((state) => filteredLists(write, state, related)),
      ...copied,
      ...effects.flatMap((effect) => effectTags(effect, write, items)),
      names.opaque,
      names.unknown,
    ]
  }
}
