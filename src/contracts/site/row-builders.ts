import type { Method } from '../method.ts'
import type { ArgumentSchema, Arguments, Endpoint, Row, RowKind } from '../row.ts'
import { context } from './parameter-sets.ts'

/** The meaning of an argument that selects or shapes a response. */
const queryDescriptions: Readonly<Record<string, string>> = {
  action: 'What to do with the item.',
  after: 'Only items dated later than this moment.',
  area: 'Only parts made for this area of the page.',
  author: 'Only items by these authors.',
  author_exclude: 'No items by these authors.',
  before: 'Only items dated earlier than this moment.',
  categories: 'Only posts in these categories.',
  categories_exclude: 'No posts in these categories.',
  context: 'How much of an item is shown: to a reader, inside another page, or to an editor.',
  discover: 'Whether sites that are not known providers are searched for embed links.',
  exclude: 'Leave out the items with these identifiers.',
  excerpt_length: 'Number of words that the excerpt has at most.',
  force: 'Delete for good instead of moving to the trash.',
  format: 'Only posts of these formats; for an embed, the notation of the answer.',
  id: 'Identifier of the resource, as in the path.',
  ignore_sticky: 'Whether sticky posts are sorted by date instead of coming first.',
  include: 'Only the items with these identifiers.',
  is_custom: 'Whether the template was made by hand rather than named by the hierarchy.',
  maxheight: 'Height in pixels that the embed may take.',
  maxwidth: 'Width in pixels that the embed may take.',
  media_type: 'Only files of these kinds.',
  menu_order: 'Only items with this position in the order.',
  menus: 'Only items of these menus.',
  menus_exclude: 'No items of these menus.',
  mime_type: 'Only files of these MIME types.',
  modified_after: 'Only items changed later than this moment.',
  modified_before: 'Only items changed earlier than this moment.',
  namespace: 'Namespace whose routes are listed.',
  offset: 'Number of items to skip.',
  order: 'Direction of the order.',
  orderby: 'Property that decides the order.',
  page: 'Which page of the list, counted from 1.',
  parent: 'Identifier of the resource that this one hangs on; in a list, only items below these.',
  parent_exclude: 'No items below these.',
  password: 'Password of a protected item.',
  per_page: 'How many items a page of the list has.',
  post_type: 'Only templates for this type of content.',
  search: 'Only items that contain this text.',
  search_columns: 'Where the text is looked for.',
  search_semantics: 'How the text is compared.',
  site_id: 'Only the template stored under this number.',
  site_pattern_category: 'Only patterns in these categories.',
  site_pattern_category_exclude: 'No patterns in these categories.',
  slug: 'Only items with these slugs; for a lookup, the slug to find a template for.',
  status: 'Only items in these states.',
  sticky: 'Only sticky posts, or only the others.',
  stylesheet: 'Identifier of the theme.',
  tags: 'Only posts with these tags.',
  tags_exclude: 'No posts with these tags.',
  tax_relation: 'Whether filters by several taxonomies must all hold, or any of them.',
  template_prefix: 'Beginning of the template name that identifies the main kind.',
  url: 'Address to find an embed for.',
}

/** What an argument means where it is written. */
const fieldDescriptions: Readonly<Record<string, string>> = {
  action: 'What to do with the item.',
  alt_text: 'Text that stands in for the image.',
  area: 'Part of the page that the template part is made for.',
  attr_title: 'Hint shown for the link.',
  author: 'Identifier of the author.',
  caption: 'Text under the image.',
  categories: 'Identifiers of the categories of the post.',
  classes: 'Class names of the link.',
  comment_status: 'Whether comments can be added.',
  content: 'Main text.',
  date: 'Moment of publication, in the time zone of the site.',
  date_gmt: 'Moment of publication, in UTC.',
  description: 'Longer text about the item.',
  excerpt: 'Short text that stands for the whole.',
  featured_media: 'Identifier of the image shown for the item.',
  format: 'Format of the post.',
  height: 'Height of the part to keep, in percent; give modifiers instead.',
  id: 'Identifier of the resource, as in the path.',
  menu_order: 'Position in the order.',
  menus: 'Identifier of the menu that the item is in.',
  meta: 'Further values by name.',
  modifiers: 'Edits of the image, in the order in which they are made.',
  object: 'Kind of thing that the menu item links to.',
  object_id: 'Identifier of the object that the menu item links to.',
  parent: 'Identifier of the resource that this one hangs on.',
  password: 'Password that readers must give.',
  ping_status: 'Whether other sites can announce links to it.',
  post: 'Identifier of the item that the file belongs to.',
  requests: 'Requests to run, in order.',
  rotation: 'Degrees to turn the image clockwise; give modifiers instead.',
  settings: 'Settings of the theme, by path.',
  site_pattern_category: 'Identifiers of the categories of the pattern.',
  slug: 'Name in addresses, unique within its type.',
  src: 'Address of the image to edit.',
  status: 'State of the item.',
  sticky: 'Whether the post comes first in lists.',
  styles: 'Styles of the theme, by path.',
  tags: 'Identifiers of the tags of the post.',
  target: 'Where the link opens.',
  template: 'Theme file that shows the item.',
  theme: 'Identifier of the theme.',
  title: 'Title.',
  type: 'Kind of thing that the item stands for.',
  url: 'Address that the menu item links to.',
  validation: 'Whether one invalid request keeps all the others from running.',
  width: 'Width of the part to keep, in percent; give modifiers instead.',
  x: 'Left edge of the part to keep, in percent; give modifiers instead.',
  xfn: 'Relationships that the link states.',
  y: 'Upper edge of the part to keep, in percent; give modifiers instead.',
}

/** The meaning of the parts of an argument, wherever they appear. */
const partDescriptions: Readonly<Record<string, string>> = {
  angle: 'Degrees to turn clockwise.',
  args: 'Values that the edit needs.',
  block_version: 'Version of the block notation that the text uses.',
  body: 'Fields of the request.',
  flip: 'Axes to mirror along.',
  headers: 'Header fields of the request.',
  height: 'Height to keep, in percent.',
  horizontal: 'Swap left and right.',
  include_children: 'Count the terms below the given ones too.',
  left: 'Left edge of the part that is kept, in percent.',
  method: 'Method of the request.',
  operator: 'Whether all of the terms are wanted, or any.',
  path: 'Path of the request, relative to the root of the interface.',
  protected: 'Whether a password is needed to read it.',
  raw: 'Text as it is stored.',
  rendered: 'Text as readers get it.',
  terms: 'Identifiers of terms.',
  top: 'Upper edge of the part that is kept, in percent.',
  type: 'Name of the edit.',
  vertical: 'Swap top and bottom.',
  width: 'Width to keep, in percent.',
}

const withDescription = (schema: ArgumentSchema, description: string | undefined): ArgumentSchema =>
  description === undefined ? schema : { description, ...schema }

/** Fills in the descriptions of the parts of a schema; parts without one stay as they are. */
const describedParts = (schema: ArgumentSchema): ArgumentSchema => ({
  ...schema,
  ...(schema.items && { items: describedParts(schema.items) }),
  ...(schema.oneOf && { oneOf: schema.oneOf.map(describedParts) }),
  ...(schema.properties && {
    properties: Object.fromEntries(
      Object.entries(schema.properties).map(([name, part]) => [
        name,
        withDescription(describedParts(part), partDescriptions[name]),
      ]),
    ),
  }),
})

const described = (argumentsOf: Arguments, words: Readonly<Record<string, string>>): Arguments =>
  Object.fromEntries(
    Object.entries(argumentsOf).map(([name, schema]) => [
      name,
      withDescription(describedParts(schema), words[name]),
    ]),
  )

type Marks = Pick<Endpoint, 'allowBatch' | 'acceptsUploads'>

const updateMethods: readonly Method[] = ['POST', 'PUT', 'PATCH']

/** Endpoint that reads. */
export const reads = (query: Arguments, marks: Marks = {}): Endpoint => ({
  methods: ['GET'],
  arguments: described(query, queryDescriptions),
  ...marks,
})

/** Endpoint that takes a POST: a creation or an action. */
export const posts = (body: Arguments, marks: Marks = {}): Endpoint => ({
  methods: ['POST'],
  arguments: described(body, fieldDescriptions),
  ...marks,
})

/** Endpoint that updates an item. */
export const updates = (fields: Arguments, marks: Marks = {}): Endpoint => ({
  methods: updateMethods,
  arguments: described(fields, fieldDescriptions),
  ...marks,
})

/** Endpoint that deletes. */
export const deletes = (query: Arguments, marks: Marks = {}): Endpoint => ({
  methods: ['DELETE'],
  arguments: described(query, queryDescriptions),
  ...marks,
})

/** Digits, as the identifier of a row in the database. */
export const digits = '[\\d]+'

/** `theme//slug` or `theme/subtheme//slug`: at most one slash inside the theme's name, any number behind it. */
export const templateIdentifier = '([^\\/:<>\\*\\?"\\|]+(?:\\/[^\\/:<>\\*\\?"\\|]+)?)[\\/\\w%-]+'

export const integer: ArgumentSchema = { type: 'integer' }
const force: Arguments = { force: { type: 'boolean', default: false } }

type RowFacts = Pick<Row, 'id' | 'kind' | 'endpoints'> & Partial<Row> & { readonly template: string }

/** A row whose template is its pattern: no parameters in the path. */
export const row = (facts: RowFacts): Row => ({
  pattern: facts.template,
  namespace: '',
  collection: '',
  handledBy: 'upstream',
  ...facts,
})

/** The facts that the rows of one collection share. */
export type Collection = {
  readonly name: string
  readonly namespace: string
  /** Pattern of an item's identifier. */
  readonly identifier: string
  /** Type of an item's identifier. */
  readonly identifierSchema: ArgumentSchema
  readonly marks: Marks
}

type Segment = string | { readonly name: string; readonly pattern: string }

/** Row below `/namespace/collection`, with template and pattern made of the same segments. */
export const collectionRow = (
  collection: Collection,
  kind: RowKind,
  name: string,
  segments: readonly Segment[],
  endpoints: readonly Endpoint[],
): Row => {
  const base = `/${collection.namespace}/${collection.name}`
  const template = segments.map((s) => (typeof s === 'string' ? `/${s}` : `/{${s.name}}`)).join('')
  const pattern = segments
    .map((s) => (typeof s === 'string' ? `/${s}` : `/(?P<${s.name}>${s.pattern})`))
    .join('')
  return row({
    id: `${collection.name}.${name}`,
    template: base + template,
    pattern: base + pattern,
    namespace: collection.namespace,
    collection: collection.name,
    kind,
    endpoints,
  })
}

/** List and creation. */
export const listRow = (collection: Collection, query: Arguments, create: Endpoint): Row =>
  collectionRow(collection, 'collection', 'collection', [], [reads(query, collection.marks), create])

/** Reading, updating and deleting one item. */
export const itemRow = (
  collection: Collection,
  facts: { readonly query: Arguments; readonly fields: Arguments },
): Row => {
  const id: Arguments = { id: collection.identifierSchema }
  return collectionRow(
    collection,
    'item',
    'item',
    [{ name: 'id', pattern: collection.identifier }],
    [
      reads({ ...id, context, ...facts.query }, collection.marks),
      updates({ ...id, ...facts.fields }, collection.marks),
      deletes({ ...id, ...force }, collection.marks),
    ],
  )
}

/** The revisions of an item and one of them. */
export const revisionRows = (collection: Collection, query: Arguments): readonly Row[] => {
  const parent = { name: 'parent', pattern: collection.identifier }
  const both: Arguments = { parent: collection.identifierSchema, id: integer }
  return [
    collectionRow(collection, 'revisions', 'revisions', [parent, 'revisions'], [reads(query)]),
    collectionRow(
      collection,
      'revision',
      'revision',
      [parent, 'revisions', { name: 'id', pattern: digits }],
      [reads({ ...both, context }), deletes({ ...both, ...force })],
    ),
  ]
}

/** The autosaves of an item and one of them. `handle` names the item: `parent`, or `id` for templates. */
export const autosaveRows = (
  collection: Collection,
  handle: 'parent' | 'id',
  fields: Arguments,
): readonly Row[] => {
  const item: Arguments = { [handle]: collection.identifierSchema }
  return [
    collectionRow(
      collection,
      'autosaves',
      'autosaves',
      [{ name: 'id', pattern: collection.identifier }, 'autosaves'],
      [reads({ ...item, context }), posts({ ...item, ...fields })],
    ),
    collectionRow(
      collection,
      'autosave',
      'autosave',
      [{ name: 'parent', pattern: collection.identifier }, 'autosaves', { name: 'id', pattern: digits }],
      [reads({ parent: collection.identifierSchema, id: integer, context })],
    ),
  ]
}
