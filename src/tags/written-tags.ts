import type { Found } from '../contracts/finding.ts'
import type { CollectionTags, WriteAction } from '../contracts/site/tags.ts'
import { effect, type NamedEffect } from '../contracts/site/write-effect.ts'
import { type DescribedItem, type Description, describeItems } from './described-items.ts'
import { integersOf } from './list-filter.ts'
import type { TagNames } from './tag-names.ts'
import type { Shown, WriteResponse } from './tagger.ts'
import { itemInPath } from './write-facts.ts'
import { copiesChanged, type ItemState, reachOf, saysEnough } from './written-change.ts'

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

  /** The lists under a filter that hold an item in that state. */
  const filteredLists = ({ collection, entry }: Write, state: ItemState): readonly string[] => {
    if (state === undefined || state === 'absent') return []
    return entry.filters.flatMap(({ property }) => {
      const value = state[property]
      if (Array.isArray(value) && value.length === 0) return []
      const values = value === undefined ? undefined : integersOf(value)
      return values === undefined
        ? [names.filteredBy(collection, property)]
        : values.map((one) => names.filtered(collection, property, one))
    })
  }

  /** All lists that may lose, gain or move it, and those of which that is not known. */
  const listsOf = (
    write: Write,
    { before, after }: Change,
    items: readonly DescribedItem[],
  ): readonly string[] => {
    const { collection } = write
    const states = after === undefined ? items.map(({ properties }) => properties) : [before, after]
    const tags = [names.list(collection), names.inner(collection), names.text(collection)]
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

  const contentTags: Readonly<Record<NamedEffect['contents'], readonly string[]>> = {
    none: [],
    dynamic: [names.dynamic],
    any: [names.rendered, names.dynamic],
  }

  /** Answers of items that name the written ones by their ids. */
  const shownByTags = (collection: string, items: readonly DescribedItem[]): readonly string[] => [
    names.shownBySome(collection),
    ...items.flatMap(({ id }) => names.shownBy(collection, id) ?? []),
  ]

  const effectTags = (
    effect: NamedEffect,
    { collection }: Write,
    items: readonly DescribedItem[],
  ): readonly string[] => {
    const tags = effect.collections.map((other) => names.any(other))
    if (effect.siblings) tags.push(names.any(collection))
    if (effect.embedded) tags.push(names.embedded)
    if (effect.shownBy) tags.push(...shownByTags(collection, items))
    return [...tags, ...contentTags[effect.contents], names.opaque, names.unknown]
  }

  /** A new item shows in its owners only: these are named, instead of all that could be owners. */
  const ownedTags = (
    write: Write,
    { before, after }: Change,
    items: readonly DescribedItem[],
  ): readonly string[] | undefined => {
    const { entry } = write
    const effect = entry.effects.create
    if (entry.owners === undefined || effect === 'everything') return undefined
    if (before !== 'absent' || after === undefined || after === 'absent') return undefined
    const tags: string[] = []
    for (const { property, collections } of entry.owners) {
      const [owner] = integersOf(after[property]) ?? []
      if (owner === undefined) return undefined
      tags.push(...collections.flatMap((one) => names.item(one, String(owner)) ?? []))
    }
    const owned = new Set(entry.owners.flatMap(({ collections }) => collections))
    const collections = effect.collections.filter((one) => !owned.has(one))
    return [
      ...tags,
      ...effectTags({ ...effect, collections, siblings: false, embedded: false }, write, items),
    ]
  }

  const fullTags = (write: Write, change: Change, items: readonly DescribedItem[]): readonly string[] => {
    const { collection, entry, action } = write
    const own = items.length === 0 ? undefined : itemsOf(write, items)
    const lists = own === undefined ? [names.any(collection)] : [...own, ...listsOf(write, change, items)]
    const owned = ownedTags(write, change, items)
    if (owned !== undefined) return [...lists, ...owned]
    const effect = (write.found.row.kind === 'action' ? entry.action : undefined) ?? entry.effects[action]
    return effect === 'everything' ? [names.all] : [...lists, ...effectTags(effect, write, items)]
  }

  return (write) => {
    const { collection, entry, response } = write
    const { refinement } = entry
    const description =
      response?.content === undefined ? undefined : describeItems(response.content, collection)
    const items = (description?.items ?? []).filter((item) => item.collection === collection)
    const change = changeOf(write, description)
    const { before, after } = change
    const reach = isAutosave(write) && response !== undefined ? 'minor' : reachOf(before, after, refinement)
    const own = itemsOf(write, items)
    if (refinement === undefined || reach === 'full' || own === undefined) {
      return fullTags(write, change, items)
    }
    const seen = [...own, names.inner(collection)]
    const copies = copiesChanged(before, after, refinement).map((other) => names.any(other))
    if (reach === 'hidden') return [...seen, ...copies, names.opaque, names.unknown]
    const reached = isAutosave(write) ? noEffect : refinement.minor
    return [...seen, names.text(collection), ...copies, ...effectTags(reached, write, items)]
  }
}

const noEffect = effect([])
