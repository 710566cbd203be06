import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { RowKind } from '../../../../src/service/row.ts'
import type { Change } from '../../../../src/service/tagger.ts'
import { changeReaches, found, json, type Read, reaches, type Write } from '../../cache/site-fixture.ts'

/** One line each: a write to a real WordPress, its status, and those of 66 responses that were different afterwards. */
const recorded = readFileSync(new URL('fixtures/observed-writes.txt', import.meta.url), 'utf8')

type Observation = {
  readonly title: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly changed: readonly string[]
}

const readLine = (line: string): Observation | undefined => {
  const match = /^\* ((POST|PUT|DELETE) (\S+).*) \[(\d{3})[^\]]*\] -> (.*)$/.exec(line)
  if (match === null) return undefined
  const [, title = '', method = '', path = '', status, changed = ''] = match
  return {
    title,
    method,
    path: path.replace(/\?.*$/, ''),
    status: Number(status),
    changed: changed === '(nothing)' ? [] : changed.split(' | '),
  }
}

const observations = recorded.split('\n').flatMap((line) => readLine(line) ?? [])

/** The matrix speaks of some items by role. */
const ids: Readonly<Record<string, string>> = {
  P: '44',
  page: '2',
  media: '81',
  new: '700',
  x: '9',
  single: 'twentytwentyfive//single',
}

const segmentsOf = (path: string): readonly string[] => {
  const [collection = '', ...rest] = path.replace('twentytwentyfive//single', 'single').split('/')
  return [collection, ...rest.map((segment) => ids[segment] ?? segment)]
}

const kinds: Readonly<Record<string, RowKind>> = { revisions: 'revisions', autosaves: 'autosaves' }

const routeMatchOf = (path: string) => {
  const [collection = '', id, part] = segmentsOf(path)
  if (id === undefined) return found(collection, collection === 'search' ? 'lookup' : 'collection')
  if (id === 'lookup') return found(collection, 'lookup')
  const kind = part === undefined ? 'item' : (kinds[part] ?? 'item')
  return found(collection, kind, kind === 'revisions' ? { parent: id } : { id })
}

/** An autosave changes what shows its parent, and no list otherwise: those that changed showed it. */
const showsParent = ({ path }: Observation, probe: string): boolean =>
  path.endsWith('autosaves') && probe.startsWith('posts?')

const pageList = '<ul class="wp-block-page-list"><li class="wp-block-pages-list__item">About</li></ul>'
const navigation = { id: 92, type: 'wp_navigation', content: { rendered: pageList } }

/** What the recorded site showed there: a menu that leads to pages and a category, and a navigation that lists pages. */
const shownAt: Readonly<Record<string, unknown>> = {
  'menu-items': [
    { id: 83, type: 'custom' },
    { id: 89, type: 'post_type', object: 'page', object_id: 2 },
    { id: 90, type: 'post_type', object: 'page', object_id: 3 },
    { id: 91, type: 'taxonomy', object: 'category', object_id: 2 },
  ],
  'menu-items/90': { id: 90, type: 'post_type', object: 'page', object_id: 3 },
  navigation: [navigation],
  'navigation/92': navigation,
}

const embedding = {
  id: 44,
  _embedded: {
    author: [{ id: 1 }],
    replies: [[{ id: 5, type: 'comment' }]],
    'wp:term': [[{ id: 2, taxonomy: 'category' }]],
  },
}

const readOf = (probe: string, shows = false): Read => {
  const [path = '', query = ''] = probe.split('?')
  if (shownAt[path] !== undefined) return { found: routeMatchOf(path), body: shownAt[path] }
  const listed = shows ? [{ id: 44, type: 'post' }] : []
  const body = query.includes('_embed') ? embedding : listed
  return { found: routeMatchOf(path), body, headers: ['X-WP-TotalPages', '3'] }
}

const writeOf = ({ method, path, status }: Observation): Write => {
  const routeMatch = routeMatchOf(path)
  const id = Number(routeMatch.pathParameters['id'] ?? '700')
  const body = { id, author: 1, categories: [2], tags: [8] }
  return { found: routeMatch, method, response: json(body, [], status) }
}

/** The site index is the gateway's own document and not kept here. */
const isCached = (probe: string): boolean => probe !== '/'

const pathOf = ({ path, title }: Observation): string => {
  if (path === 'it' || path === 'draft') return 'posts/new'
  if (path === 'tags' && title.startsWith('DELETE')) return 'tags/new'
  if (path === 'menu-items' && !title.startsWith('POST')) return 'menu-items/83'
  const alone: Readonly<Record<string, string>> = {
    blocks: 'blocks/97',
    navigation: 'navigation/92',
    'global-styles': 'global-styles/681',
    'pages/(menu-linked)': 'pages/3',
    comments: title.startsWith('DELETE') ? 'comments/5' : 'comments',
    'categories/news': 'categories/2',
    'tags/tag': 'tags/8',
    future: 'posts',
  }
  return alone[path] ?? path
}

test('the record is read', () => {
  expect(observations.length).toBeGreaterThanOrEqual(41)
  expect(observations.flatMap(({ changed }) => changed).length).toBeGreaterThan(150)
})

test.each(observations.map((one) => [one.title, { ...one, path: pathOf(one) }] as const))(
  '%s reaches every response that was seen to change',
  (_, observation) => {
    const missed = observation.changed
      .filter(isCached)
      .filter((probe) => !reaches(writeOf(observation), readOf(probe, showsParent(observation, probe))))
    expect(missed).toEqual([])
  },
)

test('writes leave most of what they were not seen to change alone', () => {
  const probes = [...new Set(observations.flatMap(({ changed }) => changed))].filter(isCached)
  const counts = { spared: 0, spareable: 0 }
  for (const one of observations) {
    const observation = { ...one, path: pathOf(one) }
    for (const probe of probes) {
      if (observation.changed.includes(probe)) continue
      counts.spareable += 1
      if (!reaches(writeOf(observation), readOf(probe))) counts.spared += 1
    }
  }
  expect(counts.spared / counts.spareable).toBeGreaterThan(0.5)
})

const typeOf: Readonly<Record<string, string>> = {
  posts: 'post',
  pages: 'page',
  media: 'attachment',
  'menu-items': 'nav_menu_item',
  blocks: 'wp_block',
  navigation: 'wp_navigation',
  templates: 'wp_template',
  'global-styles': 'wp_global_styles',
  'contact-forms': 'wpcf7_contact_form',
}

const taxonomyOf: Readonly<Record<string, string>> = { categories: 'category', tags: 'post_tag' }

const unknown = { before: undefined, after: undefined }

/** The report of the companion about such a write when it contains the object only. */
const changeOf = ({ path }: Observation): Change => {
  const [collection = '', given] = segmentsOf(path)
  const id = Number(given ?? 700) || 681
  const type = typeOf[collection]
  const taxonomy = taxonomyOf[collection]
  if (type !== undefined) return { kind: 'post', id, type, ...unknown }
  if (taxonomy !== undefined) return { kind: 'term', id, taxonomy, ...unknown }
  if (collection === 'comments') return { kind: 'comment', id, post: 44, ...unknown }
  return collection === 'users' ? { kind: 'user', id } : { kind: 'option', name: 'blogname' }
}

test.each(observations.map((one) => [one.title, { ...one, path: pathOf(one) }] as const))(
  '%s reaches every response that was seen to change, also when the companion tells of it',
  (_, observation) => {
    const missed = observation.changed
      .filter(isCached)
      .filter(
        (probe) => !changeReaches(changeOf(observation), readOf(probe, showsParent(observation, probe))),
      )
    expect(missed).toEqual([])
  },
)
