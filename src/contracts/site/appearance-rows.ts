import type { ArgumentSchema, Arguments, Row } from '../row.ts'
import { templateLookupQuery } from './action-bodies.ts'
import {
  globalStylesFields,
  newTemplateFields,
  newTemplatePartFields,
  templateFields,
  templatePartFields,
} from './appearance-fields.ts'
import {
  context,
  globalStylesRevisionsQuery,
  navigationQuery,
  revisionsQuery,
  templatesQuery,
} from './parameter-sets.ts'
import {
  autosaveRows,
  type Collection,
  collectionRow,
  digits,
  integer,
  itemRow,
  listRow,
  posts,
  reads,
  revisionRows,
  templateIdentifier,
  updates,
} from './row-builders.ts'
import { navigationFields } from './write-fields.ts'

const text: ArgumentSchema = { type: 'string' }

/** Templates and template parts differ in name and fields only. The identifier swallows slashes: revisions and autosaves come first. */
const templateRows = (name: string, created: Arguments, updated: Arguments): readonly Row[] => {
  const collection: Collection = {
    name,
    namespace: 'site/v2',
    identifier: templateIdentifier,
    identifierSchema: text,
    marks: {},
  }
  return [
    ...revisionRows(collection, revisionsQuery(text)),
    ...autosaveRows(collection, 'id', updated),
    listRow(collection, templatesQuery, posts(created)),
    collectionRow(collection, 'lookup', 'lookup', ['lookup'], [reads(templateLookupQuery)]),
    itemRow(collection, { query: {}, fields: updated }),
  ]
}

const styles: Collection = {
  name: 'global-styles',
  namespace: 'site/v2',
  identifier: digits,
  identifierSchema: integer,
  marks: {},
}
const revisionsOf = { name: 'parent', pattern: digits }
const unbatched = { allowBatch: false } as const
const stylesheet: Arguments = { stylesheet: text }

const globalStylesRows: readonly Row[] = [
  collectionRow(
    styles,
    'revisions',
    'revisions',
    [revisionsOf, 'revisions'],
    [reads(globalStylesRevisionsQuery)],
  ),
  collectionRow(
    styles,
    'revision',
    'revision',
    [revisionsOf, 'revisions', { name: 'id', pattern: digits }],
    [reads({ parent: integer, id: integer, context })],
  ),
  collectionRow(
    styles,
    'related',
    'variations',
    ['themes', { name: 'stylesheet', pattern: '[\\/\\s%\\w\\.\\(\\)\\[\\]\\@_\\-]+' }, 'variations'],
    [reads(stylesheet, unbatched)],
  ),
  collectionRow(
    styles,
    'related',
    'theme',
    ['themes', { name: 'stylesheet', pattern: '[^\\/:<>\\*\\?"\\|]+(?:\\/[^\\/:<>\\*\\?"\\|]+)?' }],
    [reads(stylesheet, unbatched)],
  ),
  collectionRow(
    styles,
    'item',
    'item',
    // As announced: a class of slash, digit and plus, so that `/5/6` fits too; the integer type of `id` then refuses it.
    [{ name: 'id', pattern: '[\\/\\d+]+' }],
    [reads({ id: integer }, unbatched), updates(globalStylesFields, unbatched)],
  ),
]

const navigation: Collection = {
  name: 'navigation',
  namespace: 'site/v2',
  identifier: digits,
  identifierSchema: integer,
  marks: { allowBatch: true },
}

/** Templates, template parts, global styles and navigation. */
export const appearanceRows: readonly Row[] = [
  ...templateRows('templates', newTemplateFields, templateFields),
  ...templateRows('template-parts', newTemplatePartFields, templatePartFields),
  ...globalStylesRows,
  listRow(navigation, navigationQuery, posts(navigationFields, navigation.marks)),
]
