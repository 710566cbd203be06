import fc from 'fast-check'

/** What a list of posts may be asked for, in terms that say nothing about spelling. */
export type Meaning = {
  readonly page?: number
  readonly per_page?: number
  readonly offset?: number
  readonly search?: string
  readonly order?: 'asc' | 'desc'
  readonly orderby?: 'date' | 'title' | 'include' | 'include_slugs'
  readonly include?: readonly number[]
  readonly exclude?: readonly number[]
  readonly slug?: readonly string[]
  readonly status?: readonly ('publish' | 'draft' | 'private')[]
  readonly sticky?: boolean
  /** Seconds since 1970, or wall-clock seconds for a time without a zone. */
  readonly after?: { readonly seconds: number; readonly zoned: boolean }
  readonly categories?: {
    readonly terms: readonly number[]
    readonly and: boolean
    readonly children: boolean
  }
  readonly embed?: true | readonly string[]
  readonly headers?: readonly string[]
}

const id = fc.integer({ min: 1, max: 12 })
const text = fc.string({ unit: 'grapheme', maxLength: 6 })
const slug = fc.oneof(fc.constantFrom('a', 'b', '007', '7', 'true', ''), text)
const few = <T>(item: fc.Arbitrary<T>, minLength = 0) => fc.array(item, { minLength, maxLength: 3 })

/** Small ranges on purpose: two random meanings are often nearly the same. */
export const meanings: fc.Arbitrary<Meaning> = fc.record(
  {
    page: fc.integer({ min: 1, max: 3 }),
    per_page: fc.constantFrom(1, 5, 10, 100),
    offset: fc.constantFrom(0, 1, 10),
    search: fc.oneof(fc.constantFrom('', '0', 'a', 'A', 'a b', 'a,b', 'page=2', '1&page=2', '%61'), text),
    order: fc.constantFrom('asc', 'desc'),
    orderby: fc.constantFrom('date', 'title', 'include', 'include_slugs'),
    include: few(id),
    exclude: few(id),
    slug: few(slug),
    status: few(fc.constantFrom('publish', 'draft', 'private')),
    sticky: fc.boolean(),
    after: fc.record({
      seconds: fc.integer({ min: 1_000_000_000, max: 1_000_000_003 }),
      zoned: fc.boolean(),
    }),
    categories: fc.record({ terms: few(id, 1), and: fc.boolean(), children: fc.boolean() }),
    embed: fc.oneof(
      fc.constant(true as const),
      few(fc.constantFrom('author', 'wp:term', '1', 'true', '0'), 1),
    ),
    headers: few(fc.constantFrom('id', 'title', 'title.raw', 'slug')),
  },
  { requiredKeys: [] },
)

const sortedSet = (list: readonly (string | number)[]): (string | number)[] => [...new Set(list)].sort()

const inOrder = (list: readonly (string | number)[]): (string | number)[] => [...new Set(list)]

/** The parts of a field list that count: WordPress stops reading where a part follows its whole, and such a list has a separate meaning. */
const headersKey = (headers: readonly string[]): unknown => {
  const whole = headers.indexOf('title')
  const cut = whole >= 0 && headers.slice(whole).includes('title.raw')
  return cut
    ? { verbatim: headers }
    : sortedSet(headers.filter((header) => header !== 'title.raw' || whole < 0))
}

const unless = <T>(value: T, isDefault: boolean): T | undefined => (isDefault ? undefined : value)

/**
 * The meaning itself as one text, from the contract's point of view: defaults are nothing, sets have no order.
 * Written without a look at how the gateway spells it.
 */
export const meaningKey = (m: Meaning): string => {
  const status = m.status === undefined ? undefined : sortedSet(m.status)
  return JSON.stringify({
    page: unless(m.page, m.page === 1),
    per_page: unless(m.per_page, m.per_page === 10),
    offset: m.offset,
    search: m.search,
    order: unless(m.order, m.order === 'desc'),
    orderby: unless(m.orderby, m.orderby === 'date'),
    include:
      m.include &&
      unless(m.orderby === 'include' ? inOrder(m.include) : sortedSet(m.include), m.include.length === 0),
    exclude: m.exclude && unless(sortedSet(m.exclude), m.exclude.length === 0),
    slug: m.slug && (m.orderby === 'include_slugs' ? inOrder(m.slug) : sortedSet(m.slug)),
    status: unless(status, status?.join() === 'publish'),
    sticky: m.sticky,
    after: m.after,
    categories: m.categories && { ...m.categories, terms: sortedSet(m.categories.terms) },
    embed: m.embed === undefined || m.embed === true ? m.embed : sortedSet(m.embed),
    fields: m.headers && unless(headersKey(m.headers), m.headers.length === 0),
  })
}
