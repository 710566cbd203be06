import { expect, test } from 'vitest'
import { createOpenTagger, createServiceTagger } from '../../../src/cache/site-tagger.ts'
import { unsafeTargets } from '../../../src/cache/tagger.ts'
import { invalidatedGroups, upstreamTags } from '../../../src/cache/tags/tag-names.ts'

test.each([
  ['Surrogate-Key by spaces', ['Surrogate-Key', 'a b  c'], ['a', 'b', 'c']],
  ['Cache-Tag by commas', ['Cache-Tag', 'a,b, c'], ['a', 'b', 'c']],
  ['xkey in several lines', ['xkey', 'a', 'xkey', 'b'], ['a', 'b']],
  ['Cache-Groups as a list of strings', ['Cache-Groups', '"a", "b c"'], ['a', 'b c']],
  ['Cache-Groups that is no list', ['Cache-Groups', 'a b'], []],
  ['nothing', ['Cache-Tag', ' , '], []],
  ['a tag too long', ['Cache-Tag', `${'x'.repeat(129)},y`], ['y']],
])('%s', (_, fields, expected) => {
  expect(upstreamTags(fields)).toEqual(expected)
})

test('an upstream cannot make more than a bounded number of tags', () => {
  const many = Array.from({ length: 10_000 }, (_, i) => `t${i}`).join(' ')
  expect(upstreamTags(['Surrogate-Key', many])).toHaveLength(128)
})

test('the answer to a write names groups to invalidate', () => {
  expect(invalidatedGroups(['Cache-Group-Invalidation', '"a", "b"'])).toEqual(['a', 'b'])
})

test('every write to a plant store reaches its list, a refused one does not', () => {
  const tagger = createServiceTagger({ service: 'plants' })
  const stored = tagger.storedTags(undefined, {}, { status: 200, fields: [], content: Buffer.from('[]') })
  const written = (status: number) =>
    tagger.writtenTags(undefined, () => undefined, 'POST', { status, fields: [], content: undefined })
  expect(written(201)).toEqual(stored)
  expect(written(409)).toEqual([])
  expect(tagger.writtenTags(undefined, () => undefined, 'POST', undefined)).toEqual(stored)
})

test('an open service is known by its own tags only', () => {
  const tagger = createOpenTagger({ service: 'legacy' })
  const content = Buffer.from('')
  expect(tagger.storedTags(undefined, {}, { status: 200, fields: ['Cache-Tag', 'a'], content })).toEqual([
    'legacy/upstream/a',
  ])
})

const unsafe = {
  target: '/things/1',
  url: 'http://upstream.test/things/1',
  roots: ['http://upstream.test', 'http://10.0.0.9/base', 'https://public.test/mount'],
}
const answered = (status: number, ...fields: string[]) => ({ status, fields, content: undefined })

test.each([
  ['its own target', answered(200), ['/things/1']],
  ['Location on the same origin', answered(201, 'Location', '/things/2?x=1'), ['/things/1', '/things/2?x=1']],
  ['Location as an absolute URL', answered(201, 'Location', 'http://upstream.test/b'), ['/things/1', '/b']],
  ['not a Location on another origin', answered(201, 'Location', 'http://other.test/b'), ['/things/1']],
  ['not a Location on another port', answered(201, 'Location', 'http://upstream.test:81/b'), ['/things/1']],
  ['Location under another target', answered(201, 'Location', 'http://10.0.0.9/base/b'), ['/things/1', '/b']],
  [
    'Location under the public URL',
    answered(201, 'Location', 'https://public.test/mount/b#x'),
    ['/things/1', '/b'],
  ],
  [
    'not a Location beside the mount',
    answered(201, 'Location', 'https://public.test/mountain/b'),
    ['/things/1'],
  ],
  ['Content-Location', answered(200, 'Content-Location', '../c'), ['/things/1', '/c']],
  ['not a Location that is no URL', answered(200, 'Location', 'http://[bad'), ['/things/1']],
  ['nothing after a refusal', answered(403, 'Location', '/x'), []],
  ['its own target after a server error', answered(500), ['/things/1']],
  ['its own target without an answer', undefined, ['/things/1']],
])('an unsafe request invalidates %s', (_, response, expected) => {
  expect(unsafeTargets(unsafe, response)).toEqual(expected)
})

test('by the RFC alone a server error spares what is stored', () => {
  expect(unsafeTargets({ ...unsafe, sparedByServerError: true }, answered(500))).toEqual([])
})
