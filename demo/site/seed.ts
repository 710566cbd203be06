import { formMarkup } from './contact-forms.ts'
import { blankEntry, type Entry, type Template } from './entry.ts'
import { fileFields } from './media.ts'
import { type Store, slugOf } from './store.ts'
import { storeKey } from './templates.ts'

/** Seeded dates never change, so that two starts serve the same bytes. */
const origin = Date.UTC(2025, 0, 1, 9)
const hour = 3_600_000
const day = 24 * hour

type Draft = Partial<Entry> & { readonly type: string; readonly at: number }

const put = (store: Store, { at, ...entry }: Draft): Entry =>
  store.put({
    ...blankEntry,
    id: store.nextId(),
    date: at,
    modified: at,
    slug: entry.title === undefined ? '' : slugOf(entry.title),
    ...entry,
  })

const paragraph = (text: string): string => `<!-- wp:paragraph -->\n<p>${text}</p>\n<!-- /wp:paragraph -->`

const seedTerms = (store: Store): void => {
  let id = 0
  const add = (taxonomy: string, name: string, parent = 0): void => {
    id += 1
    store.terms.set(id, { id, taxonomy, name, slug: slugOf(name), description: '', parent })
  }
  for (const name of ['Uncategorized', 'News', 'Guides', 'Releases', 'Events', 'Plants'])
    add('category', name)
  add('category', 'Sub news', 2)
  for (let i = 1; i <= 10; i += 1) add('post_tag', `Tag ${i}`)
  add('nav_menu', 'Main menu')
  add('wp_pattern_category', 'Teasers')
}

const people = [
  { id: 1, slug: 'admin', name: 'admin', role: 'administrator' },
  { id: 2, slug: 'eddie', name: 'Eddie', role: 'editor' },
  { id: 3, slug: 'annie', name: 'Annie', role: 'author' },
  { id: 4, slug: 'reader', name: 'Reader', role: 'subscriber' },
] as const

const postStatus = (i: number): string => ({ 58: 'draft', 59: 'private', 60: 'pending' })[i] ?? 'publish'

const seedPosts = (store: Store): void => {
  for (let i = 1; i <= 60; i += 1) {
    const status = postStatus(i)
    const text = paragraph(`Body of post ${i}. ${`words of post ${i} `.repeat(30).trim()}`)
    put(store, {
      type: 'post',
      at: origin + day * i,
      title: `Post number ${i}`,
      ...(status === 'draft' || status === 'pending' ? { slug: '' } : {}),
      content: text,
      status,
      author: (i % 3) + 1,
      password: i === 57 ? 'secret' : '',
      sticky: i === 10,
      terms: { category: [(i % 6) + 2], post_tag: [...new Set([(i % 10) + 8, ((i * 3) % 10) + 8])] },
    })
  }
}

const seedPages = (store: Store): void => {
  let parent = 0
  for (let i = 1; i <= 13; i += 1) {
    const page = put(store, {
      type: 'page',
      at: origin + hour * i,
      title: `Page ${i}`,
      content: paragraph(`Page ${i} text`),
      menuOrder: i,
      parent: i % 4 === 0 ? parent : 0,
      commentStatus: 'closed',
      pingStatus: 'closed',
    })
    if (i % 4 === 1) parent = page.id
  }
}

const seedMedia = (store: Store, home: string): void => {
  const [first] = store.ofType('post')
  for (let i = 1; i <= 5; i += 1) {
    const at = origin + day + hour * i
    const file = {
      name: `image-${i}.png`,
      mimeType: 'image/png',
      bytes: 1960 + i,
      size: { width: 640, height: 480 },
    }
    const title = `Image ${i}`
    const own = fileFields(home, at, file)
    put(store, { type: 'attachment', at, title, status: 'inherit', pingStatus: 'closed', parent: i === 1 ? (first?.id ?? 0) : 0, own }) // biome-ignore format: one record
  }
  const images = store.ofType('attachment')
  for (const [index, post] of store.ofType('post').entries()) {
    const image = index % 12 === 0 ? images[index / 12] : undefined
    if (image !== undefined) store.put({ ...post, featuredMedia: image.id })
  }
}

const seedMenu = (store: Store, home: string): void => {
  const add = (order: number, title: string, own: Record<string, unknown>, parent = 0): Entry =>
    put(store, {
      type: 'nav_menu_item',
      at: origin,
      title,
      slug: `menu-item-${order}`,
      menuOrder: order,
      parent,
      terms: { nav_menu: [18] },
      own: { attr_title: '', target: '', classes: [''], xfn: [''], ...own },
    })
  const custom = (url: string) => ({ type: 'custom', object: 'custom', object_id: 0, url })
  const top = add(1, 'Home', custom(`${home}/`))
  for (let i = 2; i <= 8; i += 1) add(i, `Item ${i}`, custom(`https://example.org/${i}`), i > 5 ? top.id : 0)
  const page = store.ofType('page').at(-1)
  // These two have no own title: they take that of the page and of the category.
  add(9, '', { type: 'post_type', object: 'page', object_id: page?.id ?? 0, url: '' })
  add(10, '', { type: 'taxonomy', object: 'category', object_id: 2, url: '' })
}

const keepVersion = (store: Store, of: Entry, kind: 'revision' | 'autosave', title: string): void => {
  const at = of.modified + hour
  const own = { ...of.own, kind }
  put(store, { ...of, id: store.nextId(), type: 'revision', at, date: at, modified: at, status: 'inherit', slug: `${of.id}-${kind}-v1`, parent: of.id, title, password: '', terms: {}, own }) // biome-ignore format: one record
}

const seedTemplates = (store: Store): void => {
  const add = (type: Template['type'], slug: string, area: string, changed: boolean): void => {
    const title = slug.charAt(0).toUpperCase() + slug.slice(1)
    const file = { title, description: `Shows the ${slug}.`, content: `<!-- wp:group --><!-- wp:site-title /--><!-- /wp:group --><!-- ${slug} -->` } // biome-ignore format: one record
    const modified = origin + day
    const post = changed ? put(store, { type, at: modified, ...file, slug }) : undefined
    const template = { type, slug, area, ...file, postId: post?.id ?? 0, author: post === undefined ? 0 : 1, modified: post === undefined ? 0 : modified, file } // biome-ignore format: one record
    store.templates.set(storeKey(template), template)
    if (post === undefined) return
    keepVersion(store, post, 'revision', title)
    keepVersion(store, post, 'autosave', title)
  }
  for (const slug of ['home', 'index', 'single', 'page', 'archive', 'search', '404']) {
    add('wp_template', slug, '', slug === 'home')
  }
  for (const slug of ['header', 'footer', 'sidebar']) add('wp_template_part', slug, slug, slug === 'footer')
}

const seedDiscussion = (store: Store, postId: number): void => {
  for (let id = 1; id <= 3; id += 1) {
    store.comments.set(id, {
      id,
      post: postId,
      authorName: `C ${id}`,
      text: `Comment ${id}`,
      date: origin + day * 2 + hour * id,
    })
  }
  for (const title of ['Contact', 'Order a plant']) {
    const id = store.nextId()
    store.forms.set(id, { id, slug: slugOf(title), title, form: formMarkup })
  }
}

const seedBlocks = (store: Store): Entry => {
  const add = (i: number): Entry =>
    put(store, {
      type: 'wp_block',
      at: origin,
      title: `Block ${i}`,
      content: paragraph(`Reusable ${i}`),
      terms: { wp_pattern_category: i === 2 ? [19] : [] },
    })
  const first = add(1)
  for (let i = 2; i <= 5; i += 1) add(i)
  // One post shows a reusable block, so that a change of the block changes a post.
  const post = store.ofType('post')[29]
  if (post !== undefined)
    store.put({ ...post, content: `${post.content}\n<!-- wp:block {"ref":${first.id}} /-->` })
  return first
}

/** Fills a store with the demo's content; the same at every start. */
export const seedStore = (store: Store, home: string): void => {
  seedTerms(store)
  for (const user of people) store.users.set(user.id, user)
  seedPosts(store)
  seedPages(store)
  seedMedia(store, home)
  seedMenu(store, home)
  const block = seedBlocks(store)
  const navigation = put(store, {
    type: 'wp_navigation',
    at: origin,
    title: 'Navigation',
    content: '<!-- wp:page-list /-->',
  })
  const styles = put(store, { type: 'wp_global_styles', at: origin, title: 'Custom Styles', slug: 'wp-global-styles', own: { settings: {}, styles: { color: { background: '#ffffff' } } } }) // biome-ignore format: one record
  seedTemplates(store)
  const [post] = store.ofType('post')
  const [page] = store.ofType('page')
  for (const entry of [post, page, block, navigation, styles]) {
    if (entry === undefined) continue
    keepVersion(store, entry, 'revision', entry.title)
    if (entry !== styles) keepVersion(store, entry, 'autosave', `${entry.title} (unsaved)`)
  }
  const [item] = store.ofType('nav_menu_item')
  if (item !== undefined) keepVersion(store, item, 'autosave', item.title)
  seedDiscussion(store, post?.id ?? 0)
}
