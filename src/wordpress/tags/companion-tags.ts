import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { TagNames } from '../../cache/tag-names.ts'
import type { ResponseHead } from '../../http/message.ts'
import { ownText } from '../../http/retained.ts'
import type { Change, ChangedState, MaybeState } from '../../service/tagger.ts'
import { unpackedText, unpackedValues } from './packed-description.ts'

/**
 * Kinds of ids and names in Trellis-Tags: posts; terms; terms whose number of posts does not matter; users; comments; menus; lists of a
 * whole type; lists that are known by what their items have; options; tables; rows of tables; rows that were not there.
 */
const taggedKinds: ReadonlySet<string> = new Set([
  'p',
  't',
  'd',
  'u',
  'c',
  'm',
  'list',
  'q',
  'o',
  'x',
  'r',
  'a',
])
const valuePattern = /^[A-Za-z0-9_.:-]{1,191}$/
/** As many octets as a head from an upstream may have. */
const longestList = 16_384

/** Sets of options that a response names by one word: what plugins read while they load, what registers widgets and addresses. */
const optionSets = ['early', 'structure'] as const
type OptionSet = (typeof optionSets)[number]

const flags: ReadonlySet<string> = new Set([
  ...['complete', 'plain', 'uncounted', 'slugs', 'n', 'blogs'],
  ...optionSets,
])

/** The blogs of a network that the response shows, four at most; a site without a network is blog 1. */
const blogsPattern = /^\d{1,10}(?:,\d{1,10}){0,3}$/

/**
 * The lists in the text; undefined when it is damaged. `n` counts the ids and names in all of them. `plain`: the response shows neither
 * how many posts a term has nor how many comments a post has. `uncounted`: it does not show how many posts a term has. `slugs`: of terms it shows ids and slugs in the
 * order of their names.
 */
const descriptionIn = (received: string) => {
  const isPacked = received.startsWith('v2;')
  const text = isPacked ? unpackedText(received.slice(3), longestList) : received
  if (text === undefined || text.length > longestList) return undefined
  const [version, ...parts] = text.split(';')
  const members = new Map(parts.map((part) => part.split('=', 2) as [string, string | undefined]))
  if (version !== 'v1' || members.size < parts.length) return undefined
  const lists = [...members].flatMap(([kind, list]) => {
    if (flags.has(kind)) return []
    const written = list === undefined || list === '' ? [] : list.split(',')
    const values = isPacked ? unpackedValues(kind, written) : written
    return [{ kind, values, count: written.length }]
  })
  const values = lists.flatMap((list) => list.values)
  const blogs = members.get('blogs') ?? ''
  const isSound =
    blogsPattern.test(blogs) &&
    lists.every(({ kind }) => taggedKinds.has(kind)) &&
    values.every((value) => valuePattern.test(value)) &&
    members.get('n') === String(lists.reduce((sum, { count }) => sum + count, 0))
  if (!isSound) return undefined
  const isComplete = members.has('complete')
  const isPlain = members.has('plain')
  const shows = {
    hidesComments: isPlain,
    hidesCounts: isPlain || members.has('uncounted'),
    hasSlugsOnly: members.has('slugs'),
  }
  const sets = optionSets.filter((set) => members.has(set))
  return { lists, sets, blogs: blogs.split(',').map(Number), isComplete, shows }
}

type TagOf = TagNames['companion']

/** Kinds of tags for what belongs to the whole network, or may. */
const networkKinds: ReadonlySet<string> = new Set(['u', 'list', 'x', 'r', 'a', 'rows'])

/** Ids and names repeat in the blogs of a network: tags for those of other blogs than the first one contain the number of the blog. */
export const tagOfBlog = ({ companion }: TagNames, blog = 1): TagOf =>
  blog === 1 ? companion : (kind, id) => companion(kind, networkKinds.has(kind) ? id : `${blog}:${id}`)

/**
 * Options that nearly every response reads: a change of one reaches all that are described, so that none of them needs a tag for
 * each.
 */
const commonOptions: ReadonlySet<string> = new Set([
  ...['siteurl', 'home', 'active_plugins', 'stylesheet', 'template', 'blog_charset', 'WPLANG'],
  ...['permalink_structure', 'gmt_offset', 'timezone_string'],
])

/**
 * The tags of a list that is known by what its items have, `sd:post:publish:author:1`: the letters say what moves an item in it, then
 * follow type, status, and a value that it filters by. A change of which not everything is known reaches each list of the type.
 */
const tagsOfList = (tagOf: TagOf, list: string): readonly string[] => {
  const at = list.indexOf(':')
  const [type = 'any'] = list.slice(at + 1).split(':', 1)
  const byLetter = [...list.slice(0, at)].map((letter) => tagOf('q', ownText(letter + list.slice(at))))
  return [...byLetter, tagOf('type', ownText(type))]
}

const severalLists = /^(.+:(?:parent|author|relation):)(\d+(?:\.\d+)+)$/

/** Lists that differ in their last number are written together, `sd:revision:inherit:parent:5.7`. */
const listsIn = (text: string): readonly string[] => {
  const [, beginning, numbers] = severalLists.exec(text) ?? []
  return numbers === undefined ? [text] : numbers.split('.').map((number) => `${beginning}${number}`)
}

/** The tags of rows of one table, `orders:id:5.7`: a change of one of them reaches the response, and so does one of unknown rows. */
const tagsOfRows = (tagOf: TagOf, rows: string): readonly string[] => {
  const [table = '', column = '', ids = ''] = rows.split(':')
  const ofRows = ids.split('.').map((id) => tagOf('r', ownText(`${table}:${column}:${id}`)))
  return [...ofRows, tagOf('rows', ownText(table))]
}

const tagOfSet = (tagOf: TagOf, set: OptionSet): string => tagOf('options', set)

/** As in the companion: the names in the set `structure`. */
const structuralOption =
  /^(?:widget_.*|sidebars_widgets|rewrite_rules|link_manager_enabled|theme_mods_.*|blog_public)$/

/** What a response shows of the objects that it names: not the numbers of comments of a post, or of posts of a term. */
type Shows = {
  readonly hidesComments: boolean
  readonly hidesCounts: boolean
  readonly hasSlugsOnly: boolean
}

/** By the kind of an object: the kind of tag for the number of what belongs to it, if a response shows it. */
const countOf = (kind: string, { hidesComments, hidesCounts }: Shows): string | undefined => {
  if (kind === 'p') return hidesComments ? undefined : 'comments'
  return kind === 't' && !hidesCounts ? 'count' : undefined
}

const isTerm = (kind: string): boolean => kind === 't' || kind === 'd'

const tagsOfValue = (tagOf: TagOf, kindOfValue: string, value: string, shows: Shows): readonly string[] => {
  const kind = isTerm(kindOfValue) ? (shows.hasSlugsOnly ? 'slug' : 't') : kindOfValue
  const count = countOf(kindOfValue, shows)
  if (count !== undefined) return [kind, count].map((kindOfTag) => ownText(tagOf(kindOfTag, value)))
  switch (kind) {
    case 'o':
      return commonOptions.has(value) ? [] : [tagOf('o', ownText(value))]
    case 'q':
      return listsIn(value).flatMap((list) => tagsOfList(tagOf, list))
    case 'r':
      return tagsOfRows(tagOf, value)
    default:
      return [tagOf(kind, ownText(value))]
  }
}

/** The parts of a response, as listed by the companion. */
export type Described = {
  readonly tags: readonly string[]
  /** Nothing is missing in the tags: they alone decide which changes reach the response. */
  readonly isComplete: boolean
}

const undescribed: Described = { tags: [], isComplete: false }

/** Every change of something public reaches a response that is not described completely. */
export const companionTags = (names: TagNames, { hints }: Pick<ResponseHead, 'hints'>): Described => {
  if (hints?.tags === undefined) return undescribed
  const described = descriptionIn(hints.tags)
  if (described === undefined) return { tags: [names.companionUnknown], isComplete: false }
  const { lists, sets, blogs, isComplete, shows } = described
  const tags = blogs.flatMap((blog) => {
    const tagOf = tagOfBlog(names, blog)
    const ofLists = lists.flatMap(({ kind, values }) =>
      values.flatMap((value) => tagsOfValue(tagOf, kind, value, shows)),
    )
    return [...ofLists, ...sets.map((set) => tagOfSet(tagOf, set))]
  })
  return { tags: isComplete ? [...tags, names.described] : [...tags, names.companionUnknown], isComplete }
}

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value)

const integersIn = (value: unknown): readonly number[] | undefined =>
  Array.isArray(value) && value.every(isWhole) ? value : undefined

/** The companion shortens texts of any length to these digits. */
const digestOf = (text: string): string => createHash('md5').update(text).digest('hex').slice(0, 12)

/** The values that decide which lists show a post and where; undefined when the state does not contain all of them. */
const positionOf = (state: ChangedState) => {
  const { status, slug, parent, author, date, menu_order, relations, protected: isProtected } = state
  const related = integersIn(relations)
  if (typeof status !== 'string' || typeof slug !== 'string' || related === undefined) return undefined
  const others = { parent, author, date, menu_order, isProtected }
  return Object.values(others).includes(undefined)
    ? undefined
    : { status, slug, relations: related, ...others }
}

type TermPosition = NonNullable<ReturnType<typeof positionOf>>

/** Kinds of lists that show a post in this state, or may. */
const kindsShowing = (type: string, { status }: TermPosition): readonly string[] => [
  `${type}:${status}`,
  `${type}:any`,
  `any:${status}`,
  'any:any',
]

/** Values that a list may filter by, as the companion spells them, by the letter of the column. */
const filtersOf = ({
  slug,
  parent,
  author,
  relations,
}: TermPosition): readonly (readonly [string, string])[] => [
  ['w', `:name:${digestOf(slug)}`],
  ['p', `:parent:${parent}`],
  ['a', `:author:${author}`],
  ...relations.map((relation): readonly [string, string] => ['r', `:relation:${relation}`]),
]

/** The letters of the columns with texts, the time of the last change, and the number of comments. The companion lists which of them differ. */
const letterOfText: Readonly<Record<string, string>> = {
  title: 't',
  content: 'c',
  excerpt: 'e',
  modified: 'u',
  comments: 'n',
}

const movedTexts = (after: ChangedState): readonly string[] => {
  const texts = after['texts']
  const letters = Array.isArray(texts) ? texts.map((name) => letterOfText[String(name)]) : [undefined]
  const knownLetters = letters.filter((letter) => letter !== undefined)
  return knownLetters.length === letters.length ? knownLetters : Object.values(letterOfText)
}

/** The letters of the columns that differ. */
const movedColumns = (before: TermPosition, after: TermPosition): readonly string[] => {
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ['d', before.date, after.date],
    ['w', before.slug, after.slug],
    ['p', before.parent, after.parent],
    ['a', before.author, after.author],
    ['m', before.menu_order, after.menu_order],
    ['r', before.relations, after.relations],
  ]
  return pairs.flatMap(([letter, was, is]) => (isDeepStrictEqual(was, is) ? [] : [letter]))
}

/** The tags of lists that a post in this position reaches, by what has moved it; `s`: it has come or gone. */
const listsAt = (
  type: string,
  position: TermPosition,
  movedLetters: readonly string[],
): readonly string[] => {
  const filters = filtersOf(position)
  // With another value of a filter it has come to the lists of the one, and gone from those of the other.
  const classesOf = (letter: string): readonly string[] =>
    movedLetters.includes(letter) ? ['x', 's', ...movedLetters] : ['x', ...movedLetters]
  return kindsShowing(type, position).flatMap((kind) => [
    ...classesOf('').map((letter) => `${letter}:${kind}`),
    ...filters.flatMap(([filterLetter, filter]) =>
      classesOf(filterLetter).map((letter) => `${letter}:${kind}${filter}`),
    ),
  ])
}

/** Lists that a change of a post reaches; undefined when the states are incomplete. */
const changedLists = (type: string, before: MaybeState, after: MaybeState): readonly string[] | undefined => {
  const states = [before, after].filter((state) => state !== null)
  const positions = states.map((state) => (state === undefined ? undefined : positionOf(state)))
  const knownPositions = positions.filter((position) => position !== undefined)
  const [was, is] = knownPositions
  if (knownPositions.length < positions.length || was === undefined) return undefined
  const isSameKind = is !== undefined && was.status === is.status && was.isProtected === is.isProtected
  const movedLetters = isSameKind ? [...movedColumns(was, is), ...movedTexts(after ?? {})] : ['s']
  return knownPositions.flatMap((position) => listsAt(type, position, movedLetters))
}

type Post = Extract<Change, { kind: 'post' }>
type Term = Extract<Change, { kind: 'term' }>
type Comment = Extract<Change, { kind: 'comment' }>
type User = Extract<Change, { kind: 'user' }>
type TableChange = Extract<Change, { kind: 'table' }>
type OptionChange = Extract<Change, { kind: 'option' }>

/** Has nothing changed but the number of posts of a term, or of comments of a post? */
const isCountOnly = ({ before, after }: Term | Post): boolean => {
  const only = before?.['only']
  return (only === 'count' || only === 'comments') && after?.['only'] === only
}

/** As the companion writes names of options and tables. */
const plainName = (name: string): string => name.replace(/[^A-Za-z0-9_.:-]/g, '_').slice(0, 64)

/** Tables that are read before anything is noted. */
const earlyTables: ReadonlySet<string> = new Set(['options', 'sitemeta', 'site', 'blogs', 'blogmeta'])

const lists = (tagOf: TagOf, ...of: readonly string[]): readonly string[] =>
  ['any', ...of].map((list) => tagOf('list', list))

const queries = (tagOf: TagOf, of: readonly string[]): readonly string[] => of.map((list) => tagOf('q', list))

const ofPost = (tagOf: TagOf, change: Post): readonly string[] => {
  const { id, type, before, after } = change
  const kinds = isCountOnly(change) ? ['comments'] : ['p', 'comments', 'm']
  const changed = changedLists(type, before, after)
  const reached =
    changed === undefined ? [type, 'any'].map((listed) => tagOf('type', listed)) : queries(tagOf, changed)
  return [...kinds.map((kind) => tagOf(kind, String(id))), ...lists(tagOf, type), ...reached]
}

/** Is what has changed neither the name of a term, nor its slug, its parent or the number of its posts? */
const isDescribedOnly = ({ before, after }: Term): boolean =>
  isDeepStrictEqual([before?.['slug'], before?.['parent']], [after?.['slug'], after?.['parent']]) &&
  isDeepStrictEqual(after?.['texts'], [])

/** Has the term another parent now, or may it have? One that is not there has none, as one at the top. */
const hasMoved = ({ before, after }: Term): boolean => {
  const [was, is] = [before, after].map((state) => (state === null ? 0 : state?.['parent']))
  return !isWhole(was) || was !== is
}

const ofTerm = (tagOf: TagOf, change: Term): readonly string[] => {
  const { id, taxonomy } = change
  const ofOthers = isDescribedOnly(change) ? [] : ['slug', 'count']
  const kinds = isCountOnly(change) ? ['count'] : ['t', ...ofOthers, 'm']
  const byId = kinds.map((kind) => tagOf(kind, String(id)))
  const ofParents = hasMoved(change) ? [`h:${taxonomy}`] : []
  const reached = isCountOnly(change) ? [`n:${taxonomy}`] : [`t:${taxonomy}`, `n:${taxonomy}`, ...ofParents]
  return [...byId, ...lists(tagOf, taxonomy), ...queries(tagOf, reached)]
}

const ofTable = (tagOf: TagOf, { name, rows, memoized = [] }: TableChange): readonly string[] => {
  const table = plainName(name)
  const byName = (kind: 'r' | 'a', of: readonly string[]): readonly string[] =>
    of.map((row) => tagOf(kind, ownText(`${table}:${row}`)))
  const reached =
    rows === undefined ? [tagOf('rows', table)] : [...byName('r', rows), ...byName('a', memoized)]
  return [tagOf('x', table), ...reached]
}

/** Responses name the keys of users' meta that they read as rows of this table, but for those that WordPress shows. */
const userKeys = 'user_keys'

const ofUser = (tagOf: TagOf, { id, keys }: User): readonly string[] =>
  keys === undefined
    ? [tagOf('u', String(id)), ...lists(tagOf, 'user')]
    : ofTable(tagOf, { kind: 'table', name: userKeys, rows: keys.map((key) => `key:${key}`) })

const parentsSuffix = '_children'

const ofOption = (names: TagNames, tagOf: TagOf, change: OptionChange): readonly string[] => {
  const name = plainName(change.name)
  if (commonOptions.has(name)) return [names.described]
  const sets: readonly OptionSet[] = [
    ...(change.early === true ? (['early'] as const) : []),
    ...(structuralOption.test(change.name) ? (['structure'] as const) : []),
  ]
  // A post that shows whether it is sticky need not name the option.
  const ofPosts =
    name === 'sticky_posts'
      ? (change.posts?.map((post) => tagOf('p', String(post))) ?? [names.described])
      : []
  // WordPress memoizes the parents of a taxonomy's terms in an option.
  const ofParents = name.endsWith(parentsSuffix) ? [`h:${name.slice(0, -parentsSuffix.length)}`] : []
  return [
    tagOf('o', name),
    tagOf('x', 'options'),
    ...ofPosts,
    ...queries(tagOf, ofParents),
    ...sets.map((set) => tagOfSet(tagOf, set)),
  ]
}

/** Lists of replies. Without both states the parent is unknown. */
const parentLists = (tagOf: TagOf, { before, after }: Comment): readonly string[] => {
  const parents = [before, after].filter((state) => state !== null).map((state) => state?.['parent'])
  return parents.every(isWhole)
    ? queries(
        tagOf,
        parents.map((parent) => `h:comment:${parent}`),
      )
    : [tagOf('type', 'comment')]
}

/**
 * The tags by which a change reaches responses that the companion describes completely, regardless of the table of the gateway;
 * undefined when it may reach all of them.
 */
export const describedChange = (names: TagNames, change: Change): readonly string[] | undefined => {
  const tagOf = tagOfBlog(names, change.blog)
  switch (change.kind) {
    case 'post':
      return ofPost(tagOf, change)
    case 'term':
      return ofTerm(tagOf, change)
    case 'comment':
      return [
        tagOf('c', String(change.id)),
        tagOf('comments', String(change.post)),
        ...lists(tagOf, 'comment'),
        ...queries(tagOf, [`k:${change.post}`]),
        ...parentLists(tagOf, change),
      ]
    case 'user':
      return ofUser(tagOf, change)
    case 'option':
      return ofOption(names, tagOf, change)
    case 'table':
      return earlyTables.has(change.name) ? [names.described] : ofTable(tagOf, change)
    case 'all':
      return undefined
  }
}
