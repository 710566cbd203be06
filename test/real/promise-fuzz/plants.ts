import type { Refinement } from '../../../src/wordpress/routes/refinements.ts'
import { effect, type NamedEffect, type WriteEffect } from '../../../src/wordpress/routes/refinements.ts'
import { type CollectionTags, siteTags, type WriteAction } from '../../../src/wordpress/tags/tags.ts'

/** A fault to put into the table of effects: one thing that a write no longer reaches. */
export type Plant = {
  /** `posts.update.categories` */
  readonly name: string
  readonly collection: string
  readonly planted: CollectionTags
}

const actions: readonly WriteAction[] = ['create', 'update', 'delete']

type Weakened = readonly [part: string, left: NamedEffect]

/** A collection, or lists of one under a filter by a property. */
const partName = (part: string | { readonly collection: string; readonly property: string }): string =>
  typeof part === 'string' ? part : `${part.property}.${part.collection}`

/** The weaker values of one member, each with the name of what is missing then. */
const weaker = (name: string, value: unknown): readonly (readonly [part: string, value: unknown])[] => {
  if (Array.isArray(value)) return value.map((one) => [partName(one), value.filter((other) => other !== one)])
  if (value === true) return [[name, false]]
  if (value === 'any')
    return [
      [`${name}.any`, 'dynamic'],
      [name, 'none'],
    ]
  return value === 'dynamic' ? [[name, 'none']] : []
}

const weakened = (whole: WriteEffect): readonly Weakened[] =>
  whole === 'everything'
    ? [['everything', effect([])]]
    : Object.entries(whole).flatMap(([name, value]) =>
        weaker(name, value).map(([part, left]): Weakened => [part, { ...whole, [name]: left }]),
      )

const ofCollection = ([collection, entry]: readonly [string, CollectionTags]): Plant[] => {
  const plant = (name: string, planted: CollectionTags): Plant => ({
    name: `${collection}.${name}`,
    collection,
    planted,
  })
  const { refinement, owners } = entry
  const effects = actions.flatMap((action) =>
    weakened(entry.effects[action]).map(([part, left]) =>
      plant(`${action}.${part}`, { ...entry, effects: { ...entry.effects, [action]: left } }),
    ),
  )
  const filters = entry.filters.map(({ argument }) =>
    // The lists count as bounded by the argument, and no write reaches them by its value.
    plant(`filters.${argument}`, {
      ...entry,
      filters: entry.filters.map((one) => (one.argument === argument ? { ...one, property: 'id' } : one)),
    }),
  )
  const minor =
    refinement === undefined
      ? []
      : [
          ...weakened(refinement.minor).map(([part, left]) =>
            plant(`minor.${part}`, { ...entry, refinement: { ...refinement, minor: left as NamedEffect } }),
          ),
          ...refinement.copied.map(({ property }, at) =>
            plant(`copied.${property}`, {
              ...entry,
              refinement: { ...refinement, copied: refinement.copied.filter((_, other) => other !== at) },
            }),
          ),
        ]
  const searched = (refinement?.searched === undefined ? [] : [refinement.searched]).flatMap((one) =>
    weakened(one.effect).map(([part, left]) =>
      plant(`searched.${part}`, {
        ...entry,
        refinement: { ...(refinement as Refinement), searched: { ...one, effect: left } },
      }),
    ),
  )
  // Properties that change together reach the same.
  const relations = Object.entries(refinement?.related ?? {})
  const related = [...new Set(relations.map(([, effect]) => effect))].flatMap((whole) => {
    const together = relations.filter(([, effect]) => effect === whole).map(([property]) => property)
    return weakened(whole).map(([part, left]) =>
      plant(`related.${together.join('+')}.${part}`, {
        ...entry,
        refinement: {
          ...(refinement as Refinement),
          related: Object.fromEntries(
            relations.map(([property, effect]) => [property, effect === whole ? left : effect]),
          ),
        },
      }),
    )
  })
  const hidden = Object.entries(refinement?.relatedHidden ?? {}).flatMap(([property, whole]) =>
    weakened(whole).map(([part, left]) =>
      plant(`hidden.${property}.${part}`, {
        ...entry,
        refinement: {
          ...(refinement as Refinement),
          relatedHidden: { ...refinement?.relatedHidden, [property]: left },
        },
      }),
    ),
  )
  const gone = (refinement?.deletedHidden === undefined ? [] : [refinement.deletedHidden]).flatMap((whole) =>
    weakened(whole).map(([part, left]) =>
      plant(`deleted-hidden.${part}`, {
        ...entry,
        refinement: { ...(refinement as Refinement), deletedHidden: left as NamedEffect },
      }),
    ),
  )
  const byArgument = Object.entries(entry.byArgument ?? {}).flatMap(([argument, one]) =>
    weakened(one.effect).map(([part, left]) =>
      plant(`argument.${argument}.${part}`, {
        ...entry,
        byArgument: { ...entry.byArgument, [argument]: { ...one, effect: left } },
      }),
    ),
  )
  const owned = (owners ?? []).map(({ property }) =>
    plant(`owners.${property}`, {
      ...entry,
      owners: (owners ?? []).map((one) => (one.property === property ? { ...one, collections: [] } : one)),
    }),
  )
  const { rights: _, ...withoutRights } = entry
  const rights = entry.rights !== undefined ? [plant('rights', withoutRights)] : []
  return [
    ...effects,
    ...minor,
    ...searched,
    ...related,
    ...hidden,
    ...gone,
    ...byArgument,
    ...filters,
    ...owned,
    ...rights,
  ]
}

/** Every row of the table without one of its effects. */
export const plants: readonly Plant[] = Object.entries(siteTags).flatMap(ofCollection)

/** Puts a fault into the table of this process; what it returns takes it out again. */
export const plantFault = ({ collection, planted }: Plant): (() => void) => {
  const table = siteTags as Record<string, CollectionTags>
  const right = table[collection]
  table[collection] = planted
  return () => {
    if (right !== undefined) table[collection] = right
  }
}
