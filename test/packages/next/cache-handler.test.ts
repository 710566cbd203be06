import { expect, test } from 'vitest'
import TrellisCacheHandler from '../../../packages/next/cache-handler.js'
import { notKept, purges } from '../../../packages/next/purges.js'

const handler = new TrellisCacheHandler()

test('before Trellis has purged everything, nothing is kept: it may not know of this process', async () => {
  // Of a process that has just been started; another file may have run in this one.
  purges.isKnown = false
  await rendered('/first', page('one', 'x'), ofPage)
  expect(await handler.get('/first', ofPage)).toBeNull()
  purges.purgeAll()
  await handler.set('/first', page('begun before', 'x'), ofPage)
  expect(await handler.get('/first', ofPage)).toBeNull()
  await handler.set('/first', page('two', 'x'), ofPage)
  expect(await handler.get('/first', ofPage)).toMatchObject({ value: { html: 'two' } })
})

test('a page that shows what Trellis lets nobody keep is not kept', async () => {
  await rendered('/unkept', page('one', `x,${notKept}`), ofPage)
  expect(await handler.get('/unkept', ofPage)).toBeNull()
})

const page = (html: string, tags: string) => ({
  kind: 'APP_PAGE',
  html,
  headers: { 'x-next-cache-tags': tags },
})
const response = (body: string, headers: Record<string, string>) => ({
  kind: 'FETCH',
  data: { headers, body, url: 'http://a/' },
  revalidate: 31_536_000,
})
const ofPage = { kind: 'APP_PAGE' }
const ofFetch = { kind: 'FETCH', tags: [], softTags: [] }

const rendered = async (key: string, value: object, context: object): Promise<void> => {
  await handler.get(key, context)
  await handler.set(key, value, context)
}

test('a page is kept until one of its tags is purged', async () => {
  await rendered('/a', page('one', 'x,y'), ofPage)
  expect(await handler.get('/a', ofPage)).toMatchObject({ value: { html: 'one' } })
  await handler.revalidateTag('z')
  expect(await handler.get('/a', ofPage)).not.toBeNull()
  await handler.revalidateTag(['y'])
  expect(await handler.get('/a', ofPage)).toBeNull()
  await handler.set('/a', page('two', 'x,y'), ofPage)
  expect(await handler.get('/a', ofPage)).toMatchObject({ value: { html: 'two' } })
})

test('a page that was rendered across a purge of one of its tags is not kept', async () => {
  await handler.get('/b', ofPage)
  await handler.revalidateTag('x')
  await handler.set('/b', page('old', 'x'), ofPage)
  expect(await handler.get('/b', ofPage)).toBeNull()
})

test('of two renderings of one page the earlier counts', async () => {
  await handler.get('/c', ofPage)
  await handler.revalidateTag('x')
  await handler.get('/c', ofPage)
  await handler.set('/c', page('old', 'x'), ofPage)
  expect(await handler.get('/c', ofPage)).toBeNull()
})

test('of several requests each counts by when it began, in whatever order they end', async () => {
  const [first, second, third] = [
    new TrellisCacheHandler(),
    new TrellisCacheHandler(),
    new TrellisCacheHandler(),
  ]
  const made = (body: string) => response(body, { 'surrogate-key': 'x' })
  await first.get('j', ofFetch)
  await second.get('j', ofFetch)
  await first.set('j', made('one'), ofFetch)
  await first.revalidateTag('x')
  await third.get('j', ofFetch)
  await second.set('j', made('old'), ofFetch)
  expect(await handler.get('j', ofFetch)).toBeNull()
  await third.set('j', made('two'), ofFetch)
  expect(await handler.get('j', ofFetch)).toMatchObject({ value: { data: { body: 'two' } } })
})

test('a page that is past its time, and rendered again across a purge, is not kept', async () => {
  const context = { ...ofPage, cacheControl: { revalidate: 0 } }
  await rendered('/d', page('one', 'x'), context)
  expect(await handler.get('/d', ofPage)).not.toBeNull()
  await handler.revalidateTag('x')
  await handler.set('/d', page('old', 'x'), context)
  expect(await handler.get('/d', ofPage)).toBeNull()
})

test('what was not asked for before, such as a page of a build, is not kept', async () => {
  await handler.set('/e', page('built', 'x'), ofPage)
  expect(await handler.get('/e', ofPage)).toBeNull()
})

test('a fetch has the tags of the response of Trellis', async () => {
  await rendered('f', response('one', { 'surrogate-key': 'aaa bbb' }), ofFetch)
  expect(await handler.get('f', ofFetch)).not.toBeNull()
  await handler.revalidateTag('bbb')
  expect(await handler.get('f', ofFetch)).toBeNull()
})

test('a fetch of a response that Trellis lets nobody keep is not kept', async () => {
  await rendered('g', response('one', { 'cdn-cache-control': 'no-store' }), ofFetch)
  expect(await handler.get('g', ofFetch)).toBeNull()
})

test('a purge of a path reaches the fetches of its pages', async () => {
  await rendered('h', response('one', { 'surrogate-key': 'aaa' }), ofFetch)
  await handler.revalidateTag('_N_T_/posts')
  expect(await handler.get('h', { ...ofFetch, softTags: ['_N_T_/posts'] })).toBeNull()
})

test('a purge of everything reaches all, and each process has an id of its own', async () => {
  await rendered('/i', page('one', ''), ofPage)
  expect(await handler.get('/i', ofPage)).not.toBeNull()
  purges.purgeAll()
  expect(await handler.get('/i', ofPage)).toBeNull()
  expect(purges.process).toMatch(/^[0-9a-f-]{36}$/)
})

test('of tags that are forgotten the purge still counts', async () => {
  await rendered('/j', page('one', 'x'), ofPage)
  await handler.revalidateTag('x')
  await handler.revalidateTag(Array.from({ length: 100_001 }, (_, at) => `tag-${at}`))
  await handler.set('/j', page('old', 'x'), ofPage)
  expect(await handler.get('/j', ofPage)).toBeNull()
})
