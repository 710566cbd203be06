import { expect, test } from 'vitest'
import { createTagNames } from '../../../src/cache/tag-names.ts'
import { invalidatedGroups, tagsReachedBy, upstreamTags } from '../../../src/cache/upstream-tags.ts'
import { createServiceTagger } from '../../../src/openapi/tags/structural-tagger.ts'
import { createOpenTagger } from '../../../src/service/open.ts'
import { companionTags } from '../../../src/wordpress/tags/companion-tags.ts'

const names = createTagNames('blog')

test.each([
  ['Surrogate-Key by spaces', ['Surrogate-Key', 'a b  c'], ['a', 'b', 'c']],
  ['Cache-Tag by commas', ['Cache-Tag', 'a,b, c'], ['a', 'b', 'c']],
  ['xkey in several lines', ['xkey', 'a', 'xkey', 'b'], ['a', 'b']],
  ['Cache-Groups as a list of strings', ['Cache-Groups', '"a", "b c"'], ['a', 'b c']],
  ['Cache-Groups that is no list', ['Cache-Groups', 'a b'], []],
  ['nothing', ['Cache-Tag', ' , '], []],
])('%s', (_, headers, expected) => {
  expect(upstreamTags(names, headers)).toEqual(expected.map((name) => `blog/upstream/${name}`))
})

test.each([
  ['more than 128 tags', ['Surrogate-Key', Array.from({ length: 10_000 }, (_, i) => `t${i}`).join(' ')], 128],
  ['a tag longer than 128 characters', ['Cache-Tag', `${'x'.repeat(129)},y`], 1],
])('a response with %s is known as one whose list is not complete', (_, headers, kept) => {
  const tags = upstreamTags(names, headers)
  expect(tags).toHaveLength(kept + 1)
  expect(tags).toContain('blog/more-upstream')
})

test('a purge by a tag of the upstream reaches responses whose list of tags is not complete', () => {
  expect(tagsReachedBy('blog/upstream/t500')).toEqual(['blog/upstream/t500', 'blog/more-upstream'])
  expect(tagsReachedBy('blog/any/posts')).toEqual(['blog/any/posts'])
})

test('the response to a write names groups to invalidate', () => {
  expect(invalidatedGroups(names, ['Cache-Group-Invalidation', '"a", "b"'])).toEqual([
    'blog/upstream/a',
    'blog/upstream/b',
    'blog/more-upstream',
  ])
  expect(invalidatedGroups(names, [])).toEqual([])
})

test('all groups of a write are invalidated, however many they are', () => {
  const many = Array.from({ length: 500 }, (_, i) => `"g${i}"`).join(', ')
  expect(invalidatedGroups(names, ['Cache-Group-Invalidation', many])).toContain('blog/upstream/g499')
})

const companion = (tags: string): readonly string[] =>
  companionTags(names, { hints: { tags, maxAge: undefined } }).tags

test('lists that are named together have the tags of each', () => {
  const [beginning, both] = ['v1;n=1;complete;blogs=1;q=sd', ['5', '7']]
  for (const column of ['revision:inherit:parent', 'post:publish:author', 'post:publish:relation']) {
    const each = both.flatMap((number) => companion(`${beginning}:${column}:${number}`))
    expect(new Set(companion(`${beginning}:${column}:${both.join('.')}`))).toEqual(new Set(each))
  }
  expect(companion(`${beginning}:post:publish:name:5.7`)).toContain(
    'blog/companion/q/d:post:publish:name:5.7',
  )
})

test('the ids in Trellis-Tags are tags of the response, and of the numbers that it may show', () => {
  const others = ['blog/companion/list/post', 'blog/companion/o/blogname', 'blog/described']
  expect(companion('v1;n=5;complete;blogs=1;p=12,15;t=3;list=post;o=blogname')).toEqual([
    'blog/companion/p/12',
    'blog/companion/comments/12',
    'blog/companion/p/15',
    'blog/companion/comments/15',
    'blog/companion/t/3',
    'blog/companion/count/3',
    ...others,
  ])
  expect(companion('v1;n=5;complete;plain;blogs=1;p=12,15;t=3;list=post;o=blogname')).toEqual([
    'blog/companion/p/12',
    'blog/companion/p/15',
    'blog/companion/t/3',
    ...others,
  ])
})

test('tags for what is of another blog than the first of a network have its number, users have none', () => {
  expect(companion('v1;n=3;complete;plain;blogs=1,2;p=12;q=d:post:publish;u=1')).toEqual([
    'blog/companion/p/12',
    'blog/companion/q/d:post:publish',
    'blog/companion/type/post',
    'blog/companion/u/1',
    'blog/companion/p/2:12',
    'blog/companion/q/2:d:post:publish',
    'blog/companion/type/2:post',
    'blog/companion/u/1',
    'blog/described',
  ])
})

test.each([
  ['not complete', 'v1;n=1;blogs=1;p=12'],
  ['of another version', 'v2;n=1;complete;blogs=1;p=12'],
  ['cut off, so that the count differs', 'v1;n=3;complete;blogs=1;p=12,15'],
  ['without a count', 'v1;complete;blogs=1;p=12'],
  ['with an unknown part', 'v1;n=1;complete;blogs=1;p=12;z=1'],
  ['with an id that is none', 'v1;n=1;complete;blogs=1;p=a/b'],
  [
    'longer than the companion sends',
    `v1;n=5000;complete;blogs=1;p=${Array.from({ length: 5000 }, () => 123).join(',')}`,
  ],
  ['sent twice', 'v1;n=1;complete;blogs=1;p=12, v1;n=1;complete;blogs=1;p=13'],
  ['without blogs', 'v1;n=1;complete;p=12'],
  ['of more than four blogs', 'v1;n=1;complete;blogs=1,2,3,4,5;p=12'],
])('Trellis-Tags that are %s make the response reachable by every change', (_, text) => {
  expect(companion(text)).toContain('blog/companion')
})

test('every write to a plant store reaches its list, a refused one does not', () => {
  const tagger = createServiceTagger({ service: 'plants' })
  const stored = tagger.storedTags(undefined, {}, { status: 200, headers: [], content: Buffer.from('[]') })
  const written = (status: number) =>
    tagger.writtenTags(undefined, () => undefined, 'POST', { status, headers: [], content: undefined })
  expect(written(201)).toEqual(stored)
  expect(written(409)).toEqual([])
  expect(tagger.writtenTags(undefined, () => undefined, 'POST', undefined)).toEqual(stored)
})

test('an open service is known by its own tags only', () => {
  const tagger = createOpenTagger({ service: 'legacy' })
  const content = Buffer.from('')
  expect(tagger.storedTags(undefined, {}, { status: 200, headers: ['Cache-Tag', 'a'], content })).toEqual([
    'legacy/upstream/a',
  ])
})
