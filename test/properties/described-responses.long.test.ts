import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Change } from '../../src/service/tagger.ts'
import { createSiteTagger } from '../../src/wordpress/tags/site-tagger.ts'
import { siteTags } from '../../src/wordpress/tags/tags.ts'
import { times } from '../support/breadth.ts'

const tagger = createSiteTagger({ service: 'site', table: siteTags })

const storedTags = (tags: string | undefined): ReadonlySet<string> =>
  new Set(
    tagger.storedTags(
      undefined,
      {},
      { status: 200, headers: [], content: Buffer.from('{}'), hints: { tags, maxAge: undefined } },
    ),
  )

/** Does the change drop a response of which the companion says this? */
const drops = (change: Change, tags: string | undefined): boolean => {
  const stored = storedTags(tags)
  return tagger.changedTags([change])?.some((tag) => stored.has(tag)) ?? true
}

/** A complete description by these parts. */
const complete = (...parts: readonly string[]): string => {
  const count = parts.flatMap((part) => part.slice(part.indexOf('=') + 1).split(',')).length
  return ['v1', `n=${count}`, 'complete', 'blogs=1', ...parts].join(';')
}

// Few values, so that a post and a list often have the same ones.
const id = fc.integer({ min: 1, max: 3 })
const status = fc.constantFrom('publish', 'draft')
const type = fc.constantFrom('post', 'garden_note', 'revision')
const slug = fc.constantFrom('oak', 'fern')

const state = fc.record({
  status,
  slug,
  parent: id,
  author: id,
  date: fc.constantFrom('2026-01-01 00:00:00', '2026-02-01 00:00:00'),
  menu_order: fc.integer({ min: 0, max: 2 }),
  protected: fc.boolean(),
  terms: fc.constant({}),
  relations: fc.uniqueArray(id, { maxLength: 3 }),
})
type State = typeof state extends fc.Arbitrary<infer Of> ? Of : never

const known = fc.option(state, { nil: null })
const unsure = fc.option(known, { nil: undefined })
const post = (before: fc.Arbitrary<State | null | undefined>): fc.Arbitrary<Change & { kind: 'post' }> =>
  fc.record({ kind: fc.constant('post' as const), id, type, before, after: before })

const taxonomy = fc.constantFrom('category', 'post_tag', 'garden_bed')
const termState = fc.option(fc.record({ slug, parent: id }), { nil: undefined })
const term: fc.Arbitrary<Change & { kind: 'term' }> = fc.record({
  kind: fc.constant('term' as const),
  id,
  taxonomy,
  before: termState,
  after: termState,
})
const comment: fc.Arbitrary<Change & { kind: 'comment' }> = fc.record({
  kind: fc.constant('comment' as const),
  id,
  post: id,
  before: fc.constant(undefined),
  after: fc.constant(undefined),
})

test('a change of an object drops every response that was made of it', () => {
  fc.assert(fc.property(post(unsure), (one) => drops(one, complete(`p=${one.id}`))))
  fc.assert(fc.property(term, (one) => drops(one, complete(`t=${one.id}`))))
  fc.assert(
    fc.property(
      comment,
      (one) => drops(one, complete(`c=${one.id}`)) && drops(one, complete(`q=k:${one.post}`)),
    ),
  )
  fc.assert(fc.property(id, (one) => drops({ kind: 'user', id: one }, complete(`u=${one}`))))
})

test('a change in a blog of a network drops what shows that blog, and keeps responses of the others', () => {
  const inBlogs = (blogs: string, ...parts: string[]) =>
    complete(...parts).replace('blogs=1', `blogs=${blogs}`)
  const one = { kind: 'post', id: 1, type: 'post', before: undefined, after: undefined, blog: 2 } as const
  for (const part of ['p=1', 'q=d:post:publish']) {
    expect(drops(one, inBlogs('2', part))).toBe(true)
    expect(drops(one, inBlogs('1,2', part))).toBe(true)
    expect(drops(one, inBlogs('1', part))).toBe(false)
    expect(drops({ ...one, blog: 1 }, inBlogs('2', part))).toBe(false)
    expect(drops({ ...one, blog: 1 }, inBlogs('2,1', part))).toBe(true)
  }
  expect(drops({ kind: 'option', name: 'blogname', blog: 2 }, complete('o=blogname'))).toBe(false)
  expect(drops({ kind: 'option', name: 'siteurl', blog: 2 }, complete('o=blogname'))).toBe(true)
  expect(drops({ kind: 'user', id: 1, blog: 0 }, inBlogs('2', 'u=1'))).toBe(true)
  expect(drops({ kind: 'table', name: 'users', blog: 0 }, inBlogs('2', 'x=users'))).toBe(true)
  expect(drops({ ...one, type: 'revision', after: { parent: 5 } }, inBlogs('2', 'p=5'))).toBe(true)
  expect(drops({ ...one, type: 'revision', after: { parent: 5 } }, complete('p=5'))).toBe(false)
})

test.each([
  'blogname',
  'siteurl',
  "d'or é",
  'permalink_structure',
  'wp_user_roles',
  'cron',
  'category_children',
])('a change of the option %s drops every response that read it', (name) => {
  const said = name.replace(/[^A-Za-z0-9_.:-]/g, '_')
  expect(drops({ kind: 'option', name }, complete(`o=${said}`))).toBe(true)
})

test('a change of the roles keeps a response that does not name them, and a change of the addresses drops it', () => {
  expect(drops({ kind: 'option', name: 'wp_user_roles' }, complete('o=blogname'))).toBe(false)
  expect(drops({ kind: 'option', name: 'permalink_structure' }, complete('o=blogname'))).toBe(true)
})

test('a change of a whole table drops every response that read it', () => {
  for (const name of ['posts', 'terms', 'garden']) {
    expect(drops({ kind: 'table', name }, complete(`x=options,${name}`))).toBe(true)
    expect(drops({ kind: 'table', name }, complete('x=links'))).toBe(false)
  }
  expect(drops({ kind: 'table', name: 'options' }, complete('x=links'))).toBe(true)
  expect(drops({ kind: 'all', reason: 'fingerprint' }, complete('x=links'))).toBe(true)
})

type Position = Exclude<State, null>

/** Is a post in that position in the list? Written a second time, from the meaning of the list. */
const isListed = (
  of: string,
  position: Position | null | undefined,
  listed: { type: string; status: string; filter: string },
) => {
  if (!position) return false
  const [name, value] = listed.filter.split(':')
  const filters: Readonly<Record<string, boolean>> = {
    '': true,
    parent: String(position.parent) === value,
    author: String(position.author) === value,
    relation: position.relations.map(String).includes(value ?? ''),
  }
  return (
    (listed.type === 'any' || listed.type === of) &&
    (listed.status === 'any' || listed.status === position.status) &&
    filters[name ?? ''] === true
  )
}

const list = fc.record({
  letters: fc.constantFrom('s', 'sd', 'sdm', 'swpadmr', 'x'),
  type: fc.oneof(type, fc.constant('any')),
  status: fc.oneof(status, fc.constant('any')),
  filter: fc.oneof(
    fc.constant(''),
    fc.tuple(fc.constantFrom('parent', 'author', 'relation'), id).map(([name, value]) => `${name}:${value}`),
  ),
})

const asQuery = (one: { letters: string; type: string; status: string; filter: string }): string =>
  complete(`q=${[one.letters, one.type, one.status, ...(one.filter === '' ? [] : [one.filter])].join(':')}`)

test('a post that comes to a list, or goes from it, drops the list', () => {
  fc.assert(
    fc.property(post(known), list, (one, listed) => {
      const [was, is] = [one.before, one.after].map((position) =>
        isListed(one.type, position as Position | null, listed),
      )
      return was === is || drops(one, asQuery(listed))
    }),
    { numRuns: times(500, 2_000) },
  )
})

test('a post that moves within a list by a column that the list uses drops the list', () => {
  const columns = { d: 'date', w: 'slug', p: 'parent', a: 'author', m: 'menu_order', r: 'relations' } as const
  fc.assert(
    fc.property(post(known), list, (one, listed) => {
      const [before, after] = [one.before, one.after] as [Position | null, Position | null]
      if (!before || !after || !isListed(one.type, before, listed) || !isListed(one.type, after, listed))
        return true
      const isMoved = Object.entries(columns).some(
        ([letter, name]) =>
          listed.letters.includes(letter) && JSON.stringify(before[name]) !== JSON.stringify(after[name]),
      )
      return (!isMoved && listed.letters !== 'x') || drops(one, asQuery(listed))
    }),
    { numRuns: times(500, 2_000) },
  )
})

test('a change of which a state is not known, or only in part, drops every list of the type', () => {
  const partly = fc.oneof(fc.constant(undefined), fc.record({ status, slug }))
  fc.assert(
    fc.property(post(partly as fc.Arbitrary<State | undefined>), list, (one, listed) => {
      const isOf = listed.type === one.type || listed.type === 'any'
      return !isOf || drops(one, asQuery(listed))
    }),
  )
})

test('a response that is not described completely is left to the table, and a change that the table does not list drops it', () => {
  const incomplete = fc.constantFrom(
    undefined,
    'v1;n=1;blogs=1;p=900',
    'v1;n=2;blogs=1;complete;p=900',
    'damaged',
  )
  const unlisted = fc.constantFrom<Change>(
    { kind: 'option', name: 'never_heard_of' },
    { kind: 'table', name: 'garden' },
    { kind: 'post', id: 3, type: 'garden_note', before: null, after: null },
    { kind: 'term', id: 3, taxonomy: 'garden_bed', before: undefined, after: undefined },
  )
  fc.assert(fc.property(incomplete, unlisted, (tags, change) => drops(change, tags)))
  expect(drops({ kind: 'option', name: 'never_heard_of' }, complete('p=900'))).toBe(false)
})

test('the number of posts of a term drops the responses that show it, and no others', () => {
  const counted = { slug: 'a', parent: 0, only: 'count' }
  const change: Change = { kind: 'term', id: 3, taxonomy: 'category', before: counted, after: counted }
  expect(drops(change, complete('t=3'))).toBe(true)
  expect(drops(change, complete('q=n:category'))).toBe(true)
  expect(drops(change, complete('t=3').replace('complete', 'complete;plain'))).toBe(false)
  expect(drops(change, complete('q=t:category'))).toBe(false)
})

test('the number of comments of a post drops the responses that show it, and no others', () => {
  const place = { status: 'publish', slug: 'oak', parent: 0, author: 1, date: '', menu_order: 0 }
  const counted = { ...place, protected: false, relations: [], only: 'comments' }
  const after = { ...counted, texts: [] }
  const change: Change = { kind: 'post', id: 3, type: 'post', before: counted, after }
  expect(drops(change, complete('p=3'))).toBe(true)
  expect(drops(change, complete('q=x:post:publish'))).toBe(true)
  expect(drops(change, complete('p=3').replace('complete', 'complete;plain'))).toBe(false)
  expect(drops(change, complete('q=stceu:post:publish'))).toBe(false)
})

test('a change of texts drops lists that use these texts, and all when it is not known which', () => {
  const before = { status: 'publish', slug: 'oak', parent: 0, author: 1, date: '', menu_order: 0 }
  const known = { ...before, protected: false, relations: [] }
  const of = (texts: unknown): Change => {
    const after = texts === undefined ? known : { ...known, texts }
    return { kind: 'post', id: 3, type: 'post', before: known, after }
  }
  for (const letter of ['t', 'c', 'e', 'u']) {
    expect(drops(of(undefined), complete(`q=s${letter}:post:publish`))).toBe(true)
    expect(drops(of(['another']), complete(`q=s${letter}:post:publish`))).toBe(true)
    expect(drops(of(['title']), complete(`q=s${letter}:post:publish`))).toBe(letter === 't')
  }
  expect(drops(of(undefined), complete('q=sdwpamr:post:publish'))).toBe(false)
})

test('a change of the sticky posts drops what shows one of those that changed, and everything when they are unknown', () => {
  const change = (posts?: readonly number[]): Change =>
    posts === undefined
      ? { kind: 'option', name: 'sticky_posts' }
      : { kind: 'option', name: 'sticky_posts', posts }
  expect(drops(change([3]), complete('o=sticky_posts'))).toBe(true)
  expect(drops(change([3]), complete('p=3'))).toBe(true)
  expect(drops(change([3]), complete('p=4'))).toBe(false)
  expect(drops(change(), complete('p=4'))).toBe(true)
})

test('a write drops what the table says in responses of both kinds, and nothing when its changes were reported', () => {
  const described = storedTags(complete('p=1'))
  const written = (isReported: boolean) =>
    tagger.writtenTags(undefined, () => undefined, 'POST', undefined, undefined, isReported)
  expect(written(false).some((tag) => described.has(tag))).toBe(true)
  expect(written(true).some((tag) => described.has(tag))).toBe(false)
  expect(written(true)).toEqual([])
})

const differences = (numbers: readonly number[]): readonly number[] =>
  numbers.map((number, at) => number - (numbers[at - 1] ?? 0))

const packed = (text: string): string => `v2;${deflateRawSync(text).toString('base64').replace(/=+$/, '')}`

const numbers = fc
  .uniqueArray(fc.integer({ min: 1, max: 99_999_999_999 }), { minLength: 1, maxLength: 14 })
  .map((all) => all.sort((a, b) => a - b))
const numberedList = fc.constantFrom('k:', 'h:comment:', 'sd:post:publish:author:', 's:any:any:relation:')
const otherList = fc.constantFrom('t:2024', 't:007', 'sw:post:publish:name:012345678901', 'n:category')

test('a packed text has the tags of the plain one', () => {
  fc.assert(
    fc.property(numbers, numbers, numberedList, otherList, (ids, more, beginning, other) => {
      const lists = more.map((number) => `${beginning}${number}`)
      const plain = complete(`p=${ids}`, `u=${more}`, `q=${[other, ...lists]}`)
      const text = complete(
        `p=${differences(ids)}`,
        `u=${differences(more)}`,
        `q=${other},${beginning}${differences(more).join('.')}`,
      )
      expect(storedTags(packed(text))).toEqual(storedTags(plain))
    }),
  )
})

test.each([
  ['no base64', 'v2;!!!'],
  ['no deflated text', 'v2;AAAA'],
  ['a text of another version', packed('v3;n=0;complete;blogs=1')],
  ['one that is longer than any', packed(`v1;n=1;complete;blogs=1;p=${'1'.repeat(100_000)}`)],
  ['ids that are no numbers', packed('v1;n=2;complete;blogs=1;p=1,a')],
])('%s counts as damaged: every change drops the response', (_, text) => {
  expect(drops({ kind: 'user', id: 9 }, text)).toBe(true)
})
