import { type Call, type Context, contextOf } from './call.ts'
import type { CollectionSpec } from './collections.ts'
import type { Entry } from './entry.ts'
import { everywhere, type Field, field, full, sharedFields, type View } from './fields.ts'
import { itemLinks } from './links.ts'
import { ownFields } from './own-fields.ts'
import { integer, text } from './values.ts'

const taxonomyField = (spec: CollectionSpec, name: string): Field | undefined => {
  const taxonomy = spec.taxonomies[name]
  if (taxonomy === undefined) return undefined
  return field(full, (entry, { site }) => {
    const nameOf = (id: number): string => site.store.terms.get(id)?.name ?? ''
    return [...(entry.terms[taxonomy] ?? [])].sort((a, b) => nameOf(a).localeCompare(nameOf(b)))
  })
}

const fieldOf = (spec: CollectionSpec, name: string): Field =>
  ownFields[spec.type]?.[name] ??
  taxonomyField(spec, name) ??
  sharedFields[name] ??
  // What remains is the sync status of blocks, whose name differs between the dialects.
  field(everywhere, (entry) => entry.own['syncStatus'] ?? '')

const defaultExcerptLength = 55

/** How a call sees an entry: its context, and whether its password opens the content. */
export const viewOf = (call: Call, spec: CollectionSpec, entry: Entry, context: Context): View => {
  const given = text(call.args, 'password')
  return {
    site: call.site,
    spec,
    context,
    unlocked: context === 'edit' || (given !== undefined && given === entry.password),
    excerptLength: integer(call.args, 'excerpt_length') ?? defaultExcerptLength,
  }
}

/** The fields of an entry, without links. */
export const renderFields = (entry: Entry, view: View): Record<string, unknown> => {
  const shown: Record<string, unknown> = {}
  for (const name of view.spec.fields) {
    const one = fieldOf(view.spec, name)
    if (one.contexts.includes(view.context)) shown[name] = one.value(entry, view)
  }
  return shown
}

/** An entry as its collection shows it to this call. */
export const renderItem = (
  call: Call,
  spec: CollectionSpec,
  entry: Entry,
  context: Context = contextOf(call),
): Record<string, unknown> => ({
  ...renderFields(entry, viewOf(call, spec, entry, context)),
  _links: itemLinks(call, spec, entry, context),
})
