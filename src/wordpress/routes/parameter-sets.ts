import type { ArgumentSchema, Arguments } from '../../service/row.ts'

export const integers: ArgumentSchema = { type: 'array', items: { type: 'integer' } }
const integersOrNone: ArgumentSchema = { ...integers, default: [] }
export const strings: ArgumentSchema = { type: 'array', items: { type: 'string' } }
const dateTime: ArgumentSchema = { type: 'string', format: 'date-time' }

/** Statuses that can be written. */
export const writableStatuses = ['publish', 'future', 'draft', 'pending', 'private'] as const

/** Statuses that WordPress registers beyond those a client may set. */
export const registeredStatuses = [
  'trash',
  'auto-draft',
  'inherit',
  'request-pending',
  'request-confirmed',
  'request-failed',
  'request-completed',
] as const

const listedStatuses = [...writableStatuses, ...registeredStatuses, 'any'] as const

export const postFormats = [
  'standard',
  'aside',
  'chat',
  'gallery',
  'link',
  'image',
  'quote',
  'status',
  'video',
  'audio',
] as const

const sortKeys = [
  'author',
  'date',
  'id',
  'include',
  'modified',
  'parent',
  'relevance',
  'slug',
  'include_slugs',
  'title',
] as const

/** The scope of a response, the same on every read. */
export const context: ArgumentSchema = { type: 'string', enum: ['view', 'embed', 'edit'], default: 'view' }

const page: ArgumentSchema = { type: 'integer', default: 1, minimum: 1 }
const perPage: ArgumentSchema = { type: 'integer', default: 10, minimum: 1, maximum: 100 }
const order: ArgumentSchema = { type: 'string', default: 'desc', enum: ['asc', 'desc'] }
const orderBy = (...more: string[]): ArgumentSchema => ({
  type: 'string',
  default: 'date',
  enum: [...sortKeys, ...more],
})

/** Arguments that some collections have in the middle of the set: the announced order of arguments is kept. */
type Inserted = {
  readonly authors?: Arguments
  readonly beforeSemantics?: Arguments
  readonly afterOrderBy?: Arguments
}

const authors: Arguments = { author: integersOrNone, author_exclude: integersOrNone }
const parents: Arguments = { parent: integersOrNone, parent_exclude: integersOrNone }

/** Set Q of the contract: the parameters of every list of a content collection. */
const collectionQuery = (inserted: Inserted): Arguments => ({
  context,
  page,
  per_page: perPage,
  search: { type: 'string' },
  after: dateTime,
  modified_after: dateTime,
  ...inserted.authors,
  before: dateTime,
  modified_before: dateTime,
  exclude: integersOrNone,
  include: integersOrNone,
  ...inserted.beforeSemantics,
  search_semantics: { type: 'string', enum: ['exact'] },
  offset: { type: 'integer' },
  order,
  orderby: orderBy(),
  ...inserted.afterOrderBy,
  search_columns: {
    default: [],
    type: 'array',
    items: { enum: ['post_title', 'post_content', 'post_excerpt'], type: 'string' },
  },
  slug: strings,
  status: { default: 'publish', type: 'array', items: { enum: listedStatuses, type: 'string' } },
})

/** A filter by terms: their identifiers as a list, or an object that also says how they combine. */
const termFilter = (more: Readonly<Record<string, ArgumentSchema>>): ArgumentSchema => ({
  type: ['object', 'array'],
  oneOf: [
    { title: 'Term ID List', ...integers },
    {
      title: 'Term ID Taxonomy Query',
      type: 'object',
      properties: { terms: integersOrNone, ...more },
      additionalProperties: false,
    },
  ],
})

const includeChildren = { include_children: { type: 'boolean', default: false } } as const
const operator = { operator: { type: 'string', enum: ['AND', 'OR'], default: 'OR' } } as const
const taxRelation: ArgumentSchema = { type: 'string', enum: ['AND', 'OR'] }

export const postsQuery: Arguments = {
  ...collectionQuery({ authors }),
  tax_relation: taxRelation,
  categories: termFilter({ ...includeChildren, ...operator }),
  categories_exclude: termFilter(includeChildren),
  tags: termFilter(operator),
  tags_exclude: termFilter({}),
  sticky: { type: 'boolean' },
  ignore_sticky: { type: 'boolean', default: true },
  format: { type: 'array', uniqueItems: true, items: { enum: postFormats, type: 'string' } },
}

export const pagesQuery: Arguments = {
  ...collectionQuery({
    authors,
    beforeSemantics: { menu_order: { type: 'integer' } },
    afterOrderBy: parents,
  }),
  orderby: orderBy('menu_order'),
}

/** List query of media: another default status, and null for "any media type". */
export const mediaQuery: Arguments = {
  ...collectionQuery({ authors, afterOrderBy: parents }),
  status: {
    default: 'inherit',
    type: 'array',
    items: { enum: ['inherit', 'private', 'trash'], type: 'string' },
  },
  media_type: {
    default: null,
    type: 'array',
    items: { type: 'string', enum: ['image', 'video', 'text', 'application', 'audio'] },
  },
  mime_type: { default: null, ...strings },
}

/** List query of menu items: a menu is read whole and in its own order. */
export const menuItemsQuery: Arguments = {
  ...collectionQuery({}),
  per_page: { ...perPage, default: 100 },
  order: { ...order, default: 'asc' },
  orderby: { ...orderBy('menu_order'), default: 'menu_order' },
  tax_relation: taxRelation,
  menus: termFilter(operator),
  menus_exclude: termFilter({}),
  menu_order: { type: 'integer' },
}

export const blocksQuery: Arguments = {
  ...collectionQuery({}),
  tax_relation: taxRelation,
  site_pattern_category: termFilter(operator),
  site_pattern_category_exclude: termFilter({}),
}

export const navigationQuery: Arguments = collectionQuery({})

export const templatesQuery: Arguments = {
  context,
  site_id: { type: 'integer' },
  area: { type: 'string' },
  post_type: { type: 'string' },
}

/** Set R of the contract: the list of revisions. Unlike set Q it has no default page size: absent means all. */
export const revisionsQuery = (parent: ArgumentSchema): Arguments => ({
  parent,
  context,
  page,
  per_page: { type: 'integer', minimum: 1, maximum: 100 },
  search: { type: 'string' },
  exclude: integersOrNone,
  include: integersOrNone,
  offset: { type: 'integer' },
  order,
  orderby: {
    type: 'string',
    default: 'date',
    enum: ['date', 'id', 'include', 'relevance', 'slug', 'include_slugs', 'title'],
  },
})

/** The list of revisions of global styles, which can be neither searched nor sorted. */
export const globalStylesRevisionsQuery: Arguments = {
  parent: { type: 'integer' },
  context,
  page,
  per_page: { type: 'integer', minimum: 1, maximum: 100 },
  offset: { type: 'integer' },
}
