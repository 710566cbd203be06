import { isDeepStrictEqual } from 'node:util'
import type { TagNames } from '../../cache/tag-names.ts'
import { parsedContent } from '../../http/bodies/json-readability.ts'
import type { Found, Row } from '../../service/row.ts'
import type { Shown, WriteResponse } from '../../service/tagger.ts'
import type { PropertyReaches } from '../routes/property-reaches.ts'
import { effect, type NamedEffect, type ReachedContents, type Refinement } from '../routes/refinements.ts'
import {
  type DescribedItem,
  type Description,
  describeItems,
  integersOf,
  itemInPath,
  lookUp,
} from './described-items.ts'
import { linkedByWrite } from './linked-items.ts'
import { type CollectionTags, namedBy, namedItems, type Owner, siteTags, type WriteAction } from './tags.ts'
import {
  copiesChanged,
  type ItemState,
  isComparable,
  keepsRevisions,
  keepsTexts,
  reachOf,
  termsNamed,
} from './written-change.ts'

/** A write that succeeded, or without a response may have. */
export type SiteWrite = {
  readonly match: Pick<Found, 'pathParameters'> & { readonly row: Pick<Row, 'kind'> }
  readonly collection: string
  readonly entry: CollectionTags
  readonly action: WriteAction
  readonly response: WriteResponse | undefined
  readonly shown: Shown
  readonly given: readonly string[] | undefined
}

type ItemChange = { readonly before: ItemState; readonly after: ItemState }

const unknownChange: ItemChange = { before: undefined, after: undefined }

const onlyItem = (description: Description | undefined): DescribedItem | undefined =>
  description?.items?.length === 1 ? description.items[0] : undefined

/** Number of stored responses that are searched for the item as it was before the write. */
const maxSearched = 8

/** Responses show only links to autosaves; but an autosave may replace the texts of a draft. */
const isAutosave = ({ match, entry }: SiteWrite): boolean =>
  match.row.kind === 'autosaves' && entry.refinement !== undefined

/** The tags that a write to a site may have changed, by the table. */
export class WrittenTags {
  readonly #reachOfProperty: PropertyReaches['of']
  readonly #names: TagNames

  constructor(names: TagNames, reachOfProperty: PropertyReaches['of']) {
    this.#reachOfProperty = reachOfProperty
    this.#names = names
  }

  of(write: SiteWrite): string[] {
    return [...this.#tagsOf(write), ...(write.collection === 'posts' ? [] : [this.#names.site])]
  }

  #stateBefore({ collection, entry, shown }: SiteWrite, tag: string): ItemState {
    const { refinement } = entry
    if (refinement === undefined) return undefined
    for (const content of shown(tag).slice(0, maxSearched)) {
      const items = describeItems(content, collection).items ?? []
      const item = items.find((candidate) => this.#names.item(candidate.collection, candidate.id) === tag)
      if (item !== undefined && isComparable(item.properties, refinement)) return item.properties
    }
    return undefined
  }

  #changeOf(write: SiteWrite, description: Description | undefined): ItemChange {
    const { match, collection, response } = write
    const item = onlyItem(description)
    if (item?.collection !== collection) return unknownChange
    if (match.row.kind === 'collection') {
      return response?.status === 201 ? { before: 'absent', after: item.properties } : unknownChange
    }
    const tag = this.#names.item(collection, item.id)
    const inPath = itemInPath(match)
    if (match.row.kind !== 'item' || tag === undefined || inPath === undefined) return unknownChange
    if (this.#names.item(collection, inPath) !== tag) return unknownChange
    if (description?.deleted === true) return { before: item.properties, after: 'absent' }
    return { before: this.#stateBefore(write, tag), after: item.properties }
  }

  /** Tags of lists that filter by one of these properties and contain the item. */
  #filteredLists(
    { collection, entry }: SiteWrite,
    state: ItemState,
    properties?: readonly string[],
  ): readonly string[] {
    if (state === undefined || state === 'absent') return []
    const filters = entry.filters.filter(({ property }) => properties?.includes(property) ?? true)
    return filters.flatMap(({ property }) => {
      const value = state[property]
      if (Array.isArray(value) && value.length === 0) return []
      const values = value === undefined ? undefined : integersOf(value)
      return values === undefined
        ? [this.#names.filteredBy(collection, property)]
        : values.map((id) => this.#names.filtered(collection, property, id))
    })
  }

  /** Tags of lists for editors that may show an item in one of these versions. */
  #innerLists(collection: string, states: readonly ItemState[]): readonly string[] {
    const statuses = states.map((state) => (state === 'absent' ? 'any' : state?.['status']))
    const texts = statuses.filter((status) => typeof status === 'string')
    if (texts.length < statuses.length) return [this.#names.inner(collection)]
    return ['any', ...texts].map((status) => this.#names.innerOf(collection, status))
  }

  #textLists(collection: string): readonly string[] {
    return [this.#names.text(collection), this.#names.modified(collection)]
  }

  /** Tags of lists that may lose, gain or move the item, including uncertain ones. */
  #listsOf(
    write: SiteWrite,
    { before, after }: ItemChange,
    items: readonly DescribedItem[],
  ): readonly string[] {
    const { collection } = write
    const states = after === undefined ? items.map(({ properties }) => properties) : [before, after]
    const tags = [
      this.#names.list(collection),
      ...this.#textLists(collection),
      ...this.#innerLists(collection, [before, after]),
    ]
    if (before === undefined) tags.push(this.#names.unsure(collection))
    return [...tags, ...states.flatMap((state) => this.#filteredLists(write, state))]
  }

  /** Tags of the written item or its parts; undefined if it is unknown. */
  #itemsOf(
    { match, collection }: SiteWrite,
    items: readonly DescribedItem[],
    parts: readonly ('item' | 'revisionsOf' | 'autosavesOf')[] = ['item', 'revisionsOf', 'autosavesOf'],
  ): readonly string[] | undefined {
    const path = itemInPath(match)
    const ids = [...(path === undefined ? [] : [path]), ...items.map(({ id }) => id)]
    const ofParts = ids.flatMap((id) => parts.map((part) => this.#names[part](collection, id)))
    const tags = ofParts.filter((tag) => tag !== undefined)
    return tags.length === ofParts.length ? tags : undefined
  }

  #contentTags(contents: NamedEffect['contents'], collection: string): readonly string[] {
    switch (contents) {
      case 'none':
        return []
      case 'dynamic':
        return [this.#names.dynamic, this.#names.dynamicOf(collection)]
      case 'any':
        return [this.#names.rendered]
    }
  }

  /** Tags of responses whose items name the written items by id. */
  #shownByTags(
    collection: string,
    items: readonly DescribedItem[],
    shownBy: TagNames['shownBy'],
    some: string,
  ): readonly string[] {
    const tags = items.map(({ id }) => shownBy(collection, id)).filter((tag) => tag !== undefined)
    if (tags.length === 0 || tags.length < items.length)
      return (namedBy[collection] ?? []).map(this.#names.any)
    return [some, ...tags]
  }

  /** Tags of terms that count the written item, and of lists of terms, which depend on the counts. */
  #countedByTags(property: string, { entry }: SiteWrite, { before, after }: ItemChange): readonly string[] {
    const counting = namedItems[property] ?? property
    const named = [before, after].map((state) => termsNamed(state, property, entry.refinement))
    if (named.includes(undefined)) return [this.#names.any(counting)]
    const terms = named.flatMap((ids) => (ids === 'none' || ids === undefined ? [] : ids))
    // The list of terms of a post exists for every readable post; a new post has no stored list.
    const hasList = before !== 'absent' && named.some((ids) => ids !== 'none')
    if (terms.length === 0 && !hasList) return []
    return [
      this.#names.list(counting),
      this.#names.related(counting),
      ...(siteTags[counting]?.filters ?? []).map(({ property }) =>
        this.#names.filteredBy(counting, property),
      ),
      ...terms.map((id) => this.#names.item(counting, String(id)) ?? this.#names.any(counting)),
    ]
  }

  #effectTags(
    effect: NamedEffect,
    write: SiteWrite,
    change: ItemChange,
    items: readonly DescribedItem[],
  ): readonly string[] {
    const { collection } = write
    const tags = effect.collections.map((other) => this.#names.any(other))
    if (effect.siblings) tags.push(this.#names.any(collection))
    if (effect.embedded) tags.push(this.#names.embedded)
    if (effect.shownBy) {
      tags.push(
        ...this.#shownByTags(collection, items, this.#names.shownBy, this.#names.shownBySome(collection)),
      )
    }
    if (effect.nameShownBy) {
      tags.push(
        ...this.#shownByTags(
          collection,
          items,
          this.#names.nameShownBy,
          this.#names.nameShownBySome(collection),
        ),
      )
    }
    tags.push(...effect.countedBy.flatMap((counting) => this.#countedByTags(counting, write, change)))
    for (const lists of effect.filteredBy) {
      tags.push(
        this.#names.related(lists.collection),
        this.#names.filteredBy(lists.collection, lists.property),
      )
    }
    return [
      ...tags,
      ...this.#contentTags(effect.contents, collection),
      this.#names.opaque,
      this.#names.unknownDependencies,
    ]
  }

  /** Was another item of the same owner rendered, so that a stored response shows what renders it? */
  #hasFellow({ collection, entry: { fellows }, shown }: SiteWrite, state: ItemState): boolean {
    if (fellows === undefined || state === undefined || state === 'absent') return false
    const wanted = { ...fellows.rendered, [fellows.property]: state[fellows.property] }
    if (wanted[fellows.property] === undefined) return false
    return shown(this.#names.any(collection))
      .slice(0, maxSearched)
      .some((content) =>
        describeItems(content, collection).items?.some(({ properties }) =>
          Object.entries(wanted).every(([name, value]) => isDeepStrictEqual(properties[name], value)),
        ),
      )
  }

  #ownerTags({ collections, embedsOnly }: Owner, id: string, hasTrace: boolean): readonly string[] {
    const tagOf = embedsOnly && hasTrace ? this.#names.embedding : this.#names.item
    return collections.flatMap((related) => tagOf(related, id) ?? [])
  }

  /** The owners of an item; undefined if the version does not contain them. */
  #ownersOf(write: SiteWrite, state: ItemState, isGone = false): readonly string[] | undefined {
    const { entry } = write
    if (entry.owners === undefined || state === undefined || state === 'absent') return undefined
    const showing = entry.owners.filter(({ createOnly }) => !isGone || createOnly === undefined)
    if (showing.length === 0) return undefined
    const hasTrace = isGone || this.#hasFellow(write, state)
    const tags = showing.map((owner) => {
      const [id] = integersOf(state[owner.property]) ?? []
      return id === undefined ? undefined : this.#ownerTags(owner, String(id), hasTrace)
    })
    return tags.includes(undefined) ? undefined : tags.flatMap((some) => some ?? [])
  }

  /** A new or deleted item is shown only by its owners, so only they are invalidated. */
  #ownedTags(
    write: SiteWrite,
    { before, after }: ItemChange,
    items: readonly DescribedItem[],
  ): readonly string[] | undefined {
    const { entry } = write
    const isNew = before === 'absent'
    const effect = entry.effects[isNew ? 'create' : 'delete']
    if (effect === 'everything' || (!isNew && after !== 'absent')) return undefined
    const owners = this.#ownersOf(write, isNew ? after : before, !isNew)
    if (owners === undefined) return undefined
    const owning = new Set(entry.owners?.flatMap(({ collections }) => collections))
    const collections = effect.collections.filter((reached) => !owning.has(reached))
    // Children of a deleted item get another parent.
    const siblings = effect.siblings && !isNew
    const owned = { ...effect, collections, siblings, embedded: false }
    return [...owners, ...this.#effectTags(owned, write, { before, after }, items)]
  }

  /** The owners after an update, which may have moved it. */
  #newOwners(write: SiteWrite, { after }: ItemChange): readonly string[] {
    const { action, entry } = write
    if (action !== 'update' || entry.owners === undefined) return []
    return (
      this.#ownersOf(write, after) ??
      entry.owners.flatMap(({ collections }) => collections.map(this.#names.any))
    )
  }

  /** Did a stored object without an id show a text in that property? */
  #wasShown({ collection, shown }: SiteWrite, name: string): boolean {
    return shown(this.#names.any(collection))
      .slice(0, maxSearched)
      .some((content) => {
        const value = parsedContent(content) as Readonly<Record<string, unknown>> | null | undefined
        const text = value?.[name]
        return typeof text === 'string' && text.trim() !== ''
      })
  }

  /** Tags for an update by the arguments that it sets; undefined if one of them is not listed. */
  #tagsByArgument(write: SiteWrite): readonly string[] | undefined {
    const { action, collection, entry, given, response } = write
    const { byArgument } = entry
    if (byArgument === undefined || action === 'delete' || given === undefined || response === undefined) {
      return undefined
    }
    const reached: string[] = [this.#names.any(collection)]
    for (const name of given) {
      const argument = lookUp(byArgument, name)
      if (argument === undefined) return undefined
      const contents: ReachedContents =
        argument.leavesTrace === false && !this.#wasShown(write, name) ? 'any' : argument.effect.contents
      reached.push(...this.#effectTags({ ...argument.effect, contents }, write, unknownChange, []))
    }
    return reached
  }

  /** Tags of responses that copy what an update may have changed. */
  #copiedTags(
    write: SiteWrite,
    { before, after }: ItemChange,
    items: readonly DescribedItem[],
  ): readonly string[] {
    const { action, entry, given } = write
    if (action !== 'update' || entry.refinement === undefined) return []
    return copiesChanged(before, after, entry.refinement, given).flatMap((effect) =>
      this.#effectTags(effect, write, { before, after }, items),
    )
  }

  #fullTags(write: SiteWrite, change: ItemChange, items: readonly DescribedItem[]): readonly string[] {
    const { collection, entry, action } = write
    const ofItems = items.length === 0 ? undefined : this.#itemsOf(write, items)
    const lists =
      ofItems === undefined
        ? [this.#names.any(collection), this.#names.embedded]
        : [...ofItems, ...this.#listsOf(write, change, items)]
    const owned = this.#ownedTags(write, change, items)
    if (owned !== undefined) return [...lists, ...owned]
    const effect = (write.match.row.kind === 'action' ? entry.action : undefined) ?? entry.effects[action]
    if (effect === 'everything') return [this.#names.all]
    const isFellow = change.before === 'absent' && this.#hasFellow(write, change.after)
    const contents = isFellow ? 'dynamic' : effect.contents
    return [
      ...lists,
      ...this.#newOwners(write, change),
      ...this.#effectTags({ ...effect, contents }, write, change, items),
      ...this.#copiedTags(write, change, items),
    ]
  }

  /** An autosave in its own record, which does not change the item. */
  #isBeside({ match }: SiteWrite, items: readonly DescribedItem[]): boolean {
    const [saved] = items
    const parent = itemInPath(match)
    return parent !== undefined && saved?.id !== parent && String(saved?.properties['parent']) === parent
  }

  /** Parts that an update does not change: autosaves always, revisions if they are equal. */
  #keptParts(
    write: SiteWrite,
    { before, after }: ItemChange,
    items: readonly DescribedItem[],
    related: readonly string[],
  ): readonly string[] | undefined {
    // The author decides who may read revisions and autosaves.
    if (write.match.row.kind !== 'item' || related.includes('author')) return this.#itemsOf(write, items)
    return this.#itemsOf(write, items, keepsRevisions(before, after) ? ['item'] : ['item', 'revisionsOf'])
  }

  /** Tags for an update of texts and of properties that only some lists use. */
  #minorTags(
    write: SiteWrite,
    change: ItemChange,
    items: readonly DescribedItem[],
    refinement: Refinement,
    changed: readonly string[],
  ): readonly string[] {
    const { collection, given } = write
    const { before, after } = change
    const parts = this.#keptParts(write, change, items, changed)
    const searched = keepsTexts(before, after, given, refinement)
      ? []
      : [refinement.searched?.effect ?? effect([])]
    const effects = [
      refinement.minor,
      ...searched,
      ...changed.flatMap((name) => refinement.related?.[name] ?? []),
    ]
    return [
      ...(parts ?? []),
      ...(searched.length === 0 ? [] : [this.#names.text(collection)]),
      this.#names.modified(collection),
      ...(changed.length === 0 ? [] : [this.#names.related(collection)]),
      ...[before, after].flatMap((state) => this.#filteredLists(write, state, changed)),
      ...effects.flatMap((effect) => this.#effectTags(effect, write, change, items)),
    ]
  }

  /** Tags for a write by what it can have changed; undefined if that may be anything. */
  #refinedTags(
    write: SiteWrite,
    change: ItemChange,
    items: readonly DescribedItem[],
  ): readonly string[] | undefined {
    const { collection, response } = write
    const { refinement } = write.entry
    const ofItems = this.#itemsOf(write, items)
    if (refinement === undefined || ofItems === undefined) return undefined
    const unknown = [this.#names.opaque, this.#names.unknownDependencies]
    const { before, after } = change
    const copies = copiesChanged(before, after, refinement)
    const copied = copies.flatMap((effect) => this.#effectTags(effect, write, change, items))
    if (isAutosave(write) && response !== undefined) {
      const texts = this.#isBeside(write, items) ? [] : [...this.#textLists(collection), ...copied]
      return [...ofItems, ...texts, ...unknown]
    }
    const reach = reachOf(before, after, refinement, this.#reachOfProperty)
    if (reach.kind === 'full') return undefined
    if (reach.kind === 'hidden') {
      const others = reach.effects.flatMap((effect) => this.#effectTags(effect, write, change, items))
      return [...ofItems, ...this.#innerLists(collection, [before, after]), ...others, ...copied, ...unknown]
    }
    return [...this.#minorTags(write, change, items, refinement, reach.related), ...copied, ...unknown]
  }

  #tagsOf(write: SiteWrite): readonly string[] {
    const byArgument = this.#tagsByArgument(write)
    if (byArgument !== undefined) return [...byArgument, this.#names.linked]
    const { collection, response } = write
    const description =
      response?.content === undefined ? undefined : describeItems(response.content, collection)
    const items = (description?.items ?? []).filter((item) => item.collection === collection)
    const change = this.#changeOf(write, description)
    const linked = linkedByWrite(this.#names, write, change, items)
    return [...(this.#refinedTags(write, change, items) ?? this.#fullTags(write, change, items)), ...linked]
  }
}
