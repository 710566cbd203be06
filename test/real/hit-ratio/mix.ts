import { createRandom, type Random } from '../promise-fuzz/random.ts'
import type { Ids } from '../sites/reads.ts'
import type { WordPress } from '../wordpress/start-wordpress.ts'

/** A write of the mix. */
export type MixedWrite = {
  readonly kind: string
  readonly method: 'POST' | 'PUT'
  readonly path: string
  readonly body: unknown
}

/** What is read and written, in the same order for the same seed. */
export type Mix = {
  readonly targets: readonly string[]
  /** The next target, by Zipf's law: the nth of them is read 1/n as often as the first. */
  nextTarget(): string
  nextWrite(): MixedWrite
}

const targetCount = 200

type Item = { readonly id: number }

const idsOn = async ({ restRoot }: Pick<WordPress, 'restRoot'>): Promise<Ids> => {
  const idsOf = async (collection: string): Promise<readonly number[]> => {
    const response = await fetch(`${restRoot}/wp/v2/${collection}?per_page=100&_fields=id`)
    return ((await response.json()) as readonly Item[]).map(({ id }) => id)
  }
  return {
    posts: (await idsOf('posts')).filter((id) => id !== 1),
    pages: await idsOf('pages'),
    categories: await idsOf('categories'),
    tags: await idsOf('tags'),
    users: await idsOf('users'),
    media: await idsOf('media'),
  }
}

/** Draws from a list by Zipf's law: the nth is drawn 1/n as often as the first. */
export const byZipf = <Item>(items: readonly Item[], random: Random): (() => Item) => {
  const sums: number[] = []
  for (let rank = 1; rank <= items.length; rank += 1) sums.push((sums.at(-1) ?? 0) + 1 / rank)
  return () => {
    const at = (random.int(1_000_000) / 1_000_000) * (sums.at(-1) ?? 0)
    const item = items[sums.findIndex((sum) => sum >= at)]
    if (item === undefined) throw new Error('nothing to draw from')
    return item
  }
}

/** Below /wp/v2/: the lists of a site's pages first, then what they lead to. */
export const targetsOf = ({ posts, pages, categories, tags, users, media }: Ids): readonly string[] => {
  const lists = [
    ...['posts', 'posts?_embed=1', 'posts?page=2', 'posts?per_page=5', 'categories', 'tags', 'pages'],
    ...['users', 'posts?page=3', 'posts?sticky=true', 'media', 'comments', 'posts?orderby=modified'],
    'search?search=plant',
  ]
  const all = [
    ...lists,
    ...categories.map((id) => `posts?categories=${id}`),
    ...posts.slice(0, 60).map((id) => `posts/${id}`),
    ...pages.map((id) => `pages/${id}`),
    ...tags.map((id) => `posts?tags=${id}`),
    ...users.map((id) => `posts?author=${id}`),
    ...[...categories.map((id) => `categories/${id}`), ...tags.map((id) => `tags/${id}`)],
    ...posts.slice(0, 30).map((id) => `posts/${id}?_embed=1`),
    ...posts.slice(5, 25).map((id) => `comments?post=${id}`),
    ...media.map((id) => `media/${id}`),
    ...posts.slice(60).map((id) => `posts/${id}`),
  ]
  const targets = [...new Set(all)].slice(0, targetCount)
  if (targets.length < targetCount) throw new Error(`the site has ${targets.length} targets only`)
  return targets
}

/** An editor's day: of 20 writes 10 change the content of a post, 3 a title, 2 publish a post, 3 are comments, one each a category and a page. */
export const editorsWrites = (
  { posts, pages, categories }: Ids,
  random: Random,
): readonly (() => MixedWrite)[] => {
  const text = (): string => String(random.int(1_000_000))
  const put = (kind: string, path: () => string, body: () => unknown) => (): MixedWrite => ({
    kind,
    method: 'PUT',
    path: path(),
    body: body(),
  })
  const post = (kind: string, path: string, body: () => unknown) => (): MixedWrite => ({
    kind,
    method: 'POST',
    path,
    body: body(),
  })
  const often = (times: number, one: () => MixedWrite) => Array.from({ length: times }, () => one)
  const aPost = (): string => `posts/${random.pick(posts)}`
  const content = (): string => `<!-- wp:paragraph --><p>Rewritten ${text()}</p><!-- /wp:paragraph -->`
  return [
    ...often(
      10,
      put('content of a post', aPost, () => ({ content: content() })),
    ),
    ...often(
      3,
      put('title of a post', aPost, () => ({ title: `Retitled ${text()}` })),
    ),
    ...often(
      2,
      post('new post', 'posts', () => ({
        title: `New ${text()}`,
        status: 'publish',
        categories: [random.pick(categories)],
        content: '<p>New.</p>',
      })),
    ),
    ...often(
      3,
      post('comment', 'comments', () => ({ post: random.pick(posts), content: `Said ${text()}` })),
    ),
    put('category of a post', aPost, () => ({ categories: [random.pick(categories)] })),
    put(
      'title of a page',
      () => `pages/${random.pick(pages)}`,
      () => ({ title: `Page ${text()}` }),
    ),
  ]
}

/** The mix of reads and writes on a fresh copy of the site of the tests. */
export const mixOn = async (wordpress: Pick<WordPress, 'restRoot'>, seed: number): Promise<Mix> => {
  const ids = await idsOn(wordpress)
  const targets = targetsOf(ids)
  const random = createRandom(seed)
  const writes = editorsWrites(ids, random)
  return { targets, nextTarget: byZipf(targets, random), nextWrite: () => random.pick(writes)() }
}
