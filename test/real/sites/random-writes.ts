import type { Random } from '../promise-fuzz/random.ts'
import type { Ids } from './reads.ts'
import type { SiteWrite } from './writes.ts'

type Make = (random: Random) => SiteWrite

const words = ['oak', 'fern', 'moss', 'heather', 'ivy', 'sedge']

/** Writes of an editor, an administrator and a shop to what the reads of the measurement show, and to other things. */
export const randomWrites = (ids: Ids, plugins: readonly string[]): readonly Make[] => {
  let count = 0
  const text = (random: Random): string => {
    count += 1
    return `${random.pick(words)} ${random.pick(words)} ${count}`
  }
  const html = (random: Random): string => `<p>${text(random)}</p>`
  const update =
    (pool: keyof Ids, name: string, body: (random: Random) => object): Make =>
    (random) => ({
      name: `${pool}.${name}`,
      method: 'PUT',
      path: `/wp/v2/${pool}/${random.pick(ids[pool])}`,
      body: body(random),
    })
  const create =
    (name: string, path: string, body: (random: Random) => object): Make =>
    (random) => ({ name, method: 'POST', path, body: body(random) })
  const of = (pool: keyof Ids) => (random: Random) => random.pick(ids[pool])
  const core: readonly Make[] = [
    ...Array.from({ length: 4 }, () => update('posts', 'content', (random) => ({ content: html(random) }))),
    update('posts', 'title', (random) => ({ title: text(random) })),
    update('posts', 'excerpt', (random) => ({ excerpt: text(random) })),
    update('posts', 'categories', (random) => ({ categories: [of('categories')(random)] })),
    update('posts', 'tags', (random) => ({ tags: [of('tags')(random)] })),
    update('posts', 'image', (random) => ({ featured_media: of('media')(random) })),
    update('posts', 'author', (random) => ({ author: of('users')(random) })),
    update('posts', 'status', (random) => ({ status: random.pick(['publish', 'publish', 'draft']) })),
    update('posts', 'slug', (random) => ({ slug: text(random) })),
    update('posts', 'sticky', (random) => ({ sticky: random.chance(0.5) })),
    update('posts', 'comments', (random) => ({ comment_status: random.pick(['open', 'closed']) })),
    create('posts.create', '/wp/v2/posts', (random) => ({
      ...{ title: text(random), status: 'publish', content: html(random) },
      ...{ categories: [of('categories')(random)], featured_media: of('media')(random) },
    })),
    update('pages', 'title', (random) => ({ title: text(random) })),
    update('pages', 'content', (random) => ({ content: html(random) })),
    update('pages', 'parent', (random) => ({ parent: random.pick([0, of('pages')(random)]) })),
    update('media', 'alt text', (random) => ({ alt_text: text(random) })),
    update('media', 'caption', (random) => ({ caption: text(random) })),
    update('media', 'title', (random) => ({ title: text(random) })),
    update('media', 'post', (random) => ({ post: of('posts')(random) })),
    update('categories', 'name', (random) => ({ name: text(random) })),
    update('categories', 'description', (random) => ({ description: text(random) })),
    update('categories', 'parent', (random) => ({ parent: random.pick([0, of('categories')(random)]) })),
    update('tags', 'name', (random) => ({ name: text(random) })),
    update('users', 'name', (random) => ({ name: text(random) })),
    update('users', 'description', (random) => ({ description: text(random) })),
    ...Array.from({ length: 2 }, () =>
      create('comments.create', '/wp/v2/comments', (random) => ({
        post: of('posts')(random),
        content: text(random),
      })),
    ),
    create('settings.title', '/wp/v2/settings', (random) => ({ title: text(random) })),
    create('settings.description', '/wp/v2/settings', (random) => ({ description: text(random) })),
  ]
  const has = (...names: readonly string[]): boolean => names.some((name) => plugins.includes(name))
  const ofPlugins: readonly (readonly [boolean, Make])[] = [
    [has('acf', 'scf'), update('posts', 'fields', (random) => ({ acf: { subtitle: text(random) } }))],
    [
      has('acf', 'scf'),
      update('posts', 'related', (random) => ({ acf: { related: [of('posts')(random)] } })),
    ],
    [has('acf'), update('categories', 'fields', (random) => ({ acf: { colour: text(random) } }))],
    [
      has('cptui'),
      create('books.create', '/wp/v2/books', (random) => ({ title: text(random), status: 'publish' })),
    ],
    [has('cptui'), create('genres.create', '/wp/v2/genres', (random) => ({ name: text(random) }))],
    [
      has('pods'),
      create('films.create', '/wp/v2/films', (random) => ({ title: text(random), status: 'publish' })),
    ],
    [
      has('polylang'),
      create('posts.create in German', '/wp/v2/posts?lang=de', (random) => ({
        ...{ title: text(random), status: random.pick(['publish', 'draft']), content: html(random) },
      })),
    ],
    [
      has('polylang'),
      create('categories.create in German', '/wp/v2/categories?lang=de', (random) => ({
        name: text(random),
      })),
    ],
    [has('polylang'), create('tags.create', '/wp/v2/tags', (random) => ({ name: text(random) }))],
    [
      has('woocommerce'),
      create('products.create', '/wc/v3/products', (random) => ({ name: text(random), regular_price: '5' })),
    ],
    [
      has('yoast'),
      update('posts', 'search title', (random) => ({ meta: { _yoast_wpseo_title: text(random) } })),
    ],
  ]
  return [...core, ...ofPlugins.flatMap(([isThere, make]) => (isThere ? [make, make] : []))]
}
