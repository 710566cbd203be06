import { content, navigationContent, oneOf, pattern, templateParts, text } from './contents.ts'
import type { Pool, Pools } from './pools.ts'
import type { Random } from './random.ts'
import { userIds } from './site-under-fuzz.ts'
import type { Operation } from './write.ts'

type Body = Readonly<Record<string, unknown>>
type MakeBody = (pools: Pools, random: Random) => Body
type MakeOperation = (pools: Pools, random: Random) => Operation

const theme = 'twentytwentyfour'

/** Some of the members, at least one. */
const someOf = (members: readonly (() => Body)[], random: Random): Body =>
  Object.assign({}, random.pick(members)(), ...random.some(members, 2).map((member) => member()))

const status: MakeBody = (_, random) => ({
  status: random.pick(['publish', 'publish', 'publish', 'draft', 'private', 'pending']),
})

const postBody: MakeBody = (pools, random) =>
  someOf(
    [
      () => ({ title: text(random) }),
      () => ({ content: content(pools, random) }),
      () => ({ content: content(pools, random) }),
      () => ({ excerpt: text(random) }),
      () => ({ categories: random.some(pools.categories, 2) }),
      () => ({ tags: random.some(pools.tags, 3) }),
      () => status(pools, random),
      () => ({ sticky: random.chance(0.5) }),
      () => ({ author: oneOf(pools, 'users', random) }),
      () => ({ featured_media: oneOf(pools, 'media', random) }),
      () => ({ slug: text(random) }),
      () => ({ date: `2025-0${1 + random.int(9)}-1${random.int(9)}T08:00:00` }),
      () => ({ comment_status: random.pick(['open', 'closed']) }),
      () => ({ password: random.pick(['', '', 'secret']) }),
      () => ({ format: random.pick(['standard', 'aside']) }),
      () => ({ template: random.pick(['', 'page-no-title']) }),
    ],
    random,
  )

const pageBody: MakeBody = (pools, random) =>
  someOf(
    [
      () => ({ title: text(random) }),
      () => ({ content: content(pools, random) }),
      () => ({ content: content(pools, random) }),
      () => status(pools, random),
      () => ({ parent: random.pick(['0', oneOf(pools, 'pages', random)]) }),
      () => ({ menu_order: random.int(9) }),
      () => ({ slug: text(random) }),
      () => ({ author: oneOf(pools, 'users', random) }),
      () => ({ featured_media: oneOf(pools, 'media', random) }),
      () => ({ password: random.pick(['', '', 'secret']) }),
    ],
    random,
  )

const termBody =
  (parents: boolean): MakeBody =>
  (pools, random) =>
    someOf(
      [
        () => ({ name: `${text(random)} ${random.int(1000)}` }),
        () => ({ slug: `${text(random)} ${random.int(1000)}` }),
        () => ({ description: text(random) }),
        ...(parents ? [() => ({ parent: random.pick(['0', oneOf(pools, 'categories', random)]) })] : []),
      ],
      random,
    )

const named: MakeBody = (_, random) => ({ name: `${text(random)} ${random.int(100_000)}` })

const menuItem: MakeBody = (pools, random) =>
  someOf(
    [
      () => ({ title: text(random) }),
      () => ({ url: `https://example.org/${random.int(50)}`, type: 'custom' }),
      () => ({ menu_order: 1 + random.int(9) }),
      () => ({ parent: random.pick(['0', oneOf(pools, 'menu-items', random)]) }),
      () => ({ type: 'post_type', object: 'page', object_id: oneOf(pools, 'pages', random), title: '' }),
      () => ({ type: 'post_type', object: 'post', object_id: oneOf(pools, 'posts', random), title: '' }),
      () => ({
        type: 'taxonomy',
        object: 'category',
        object_id: oneOf(pools, 'categories', random),
        title: '',
      }),
    ],
    random,
  )

type Changes = {
  readonly create?: MakeBody
  readonly update?: MakeBody
  /** Query of a deletion. */
  readonly remove?: (random: Random, pools: Pools) => string
}

const byForce = (): string => '?force=true'
const trashOrForce = (random: Random): string => random.pick(['', '', '?force=true'])

const collections: Partial<Record<Pool, Changes>> = {
  posts: {
    create: (pools, random) => ({
      title: text(random),
      content: content(pools, random),
      status: 'publish',
      ...postBody(pools, random),
    }),
    update: postBody,
    remove: trashOrForce,
  },
  pages: {
    create: (pools, random) => ({
      title: text(random),
      content: content(pools, random),
      status: 'publish',
      ...pageBody(pools, random),
    }),
    update: pageBody,
    remove: trashOrForce,
  },
  categories: {
    create: (pools, random) => ({ ...termBody(true)(pools, random), ...named(pools, random) }),
    update: termBody(true),
    remove: byForce,
  },
  tags: {
    create: (pools, random) => ({ ...termBody(false)(pools, random), ...named(pools, random) }),
    update: termBody(false),
    remove: byForce,
  },
  wp_pattern_category: { create: named, update: termBody(false), remove: byForce },
  comments: {
    create: (pools, random) => ({
      post: oneOf(pools, 'posts', random),
      content: text(random),
      parent: random.pick(['0', '0', oneOf(pools, 'comments', random)]),
    }),
    update: (_, random) =>
      someOf(
        [
          () => ({ content: text(random) }),
          () => ({ status: random.pick(['hold', 'approved', 'spam', 'trash']) }),
          () => ({ author_name: text(random) }),
          () => ({ date: `2025-0${1 + random.int(9)}-11T08:00:00` }),
        ],
        random,
      ),
    remove: trashOrForce,
  },
  media: {
    update: (pools, random) =>
      someOf(
        [
          () => ({ title: text(random) }),
          () => ({ caption: text(random) }),
          () => ({ alt_text: text(random) }),
          () => ({ description: text(random) }),
          () => ({ post: oneOf(pools, 'posts', random) }),
          () => ({ author: oneOf(pools, 'users', random) }),
          () => ({ slug: text(random) }),
        ],
        random,
      ),
    remove: byForce,
  },
  menus: {
    create: named,
    update: (_, random) =>
      someOf(
        [() => ({ name: `${text(random)} ${random.int(1000)}` }), () => ({ description: text(random) })],
        random,
      ),
    remove: byForce,
  },
  'menu-items': {
    create: (pools, random) => ({
      title: text(random),
      url: 'https://example.org/new',
      status: 'publish',
      menus: oneOf(pools, 'menus', random),
      menu_order: 1 + random.int(20),
      ...menuItem(pools, random),
    }),
    update: menuItem,
    remove: byForce,
  },
  blocks: {
    create: (pools, random) => ({ title: text(random), content: pattern(pools, random), status: 'publish' }),
    update: (pools, random) =>
      someOf(
        [
          () => ({ content: pattern(pools, random) }),
          () => ({ title: text(random) }),
          () => ({ status: random.pick(['publish', 'draft']) }),
          () => ({ wp_pattern_category: random.some(pools.wp_pattern_category, 2) }),
        ],
        random,
      ),
    remove: trashOrForce,
  },
  navigation: {
    create: (pools, random) => ({
      title: text(random),
      content: navigationContent(pools, random),
      status: 'publish',
    }),
    update: (pools, random) =>
      someOf(
        [() => ({ content: navigationContent(pools, random) }), () => ({ title: text(random) })],
        random,
      ),
    remove: trashOrForce,
  },
  users: {
    create: (_, random) => {
      const username = `user${random.int(1_000_000)}`
      return { username, email: `${username}@example.org`, password: 'Long enough 1', roles: ['author'] }
    },
    update: (_, random) =>
      someOf(
        [
          () => ({ name: text(random) }),
          () => ({ description: text(random) }),
          () => ({ url: `https://example.org/${random.int(9)}` }),
          () => ({ first_name: text(random) }),
          () => ({ nickname: text(random) }),
          () => ({ slug: `user-${random.int(1000)}` }),
        ],
        random,
      ),
  },
  notes: {
    create: (_, random) => ({ title: text(random), text: text(random) }),
    update: (_, random) => ({ text: text(random) }),
    remove: () => '',
  },
}

const rootOf = (pool: Pool): string => (pool === 'notes' ? '/garden-notes/v1/notes' : `/wp/v2/${pool}`)

const update = (route: string, body: Body, random: Random): Operation => ({
  method: random.pick(['PUT', 'PATCH', 'POST']),
  route,
  body,
})

/** The deleted user must not be the user that sends the request. */
const otherUser = (pools: Pools, random: Random): string => {
  const others = pools.users.filter((id) => id !== '1')
  return others.length === 0 ? '999999' : random.pick(others)
}

const others: Readonly<Record<string, MakeOperation>> = {
  'users.delete': (pools, random) => ({
    method: 'DELETE',
    route: `/wp/v2/users/${otherUser(pools, random)}?force=true&reassign=1`,
  }),
  'posts.autosave': (pools, random) => ({
    method: 'POST',
    route: `/wp/v2/posts/${oneOf(pools, 'posts', random)}/autosaves`,
    body: { title: text(random), content: content(pools, random) },
  }),
  // What an editor and a shop send all day; the plugin `noise` answers.
  'noise.collaboration': () => ({ method: 'POST', route: '/wp-sync/v1/updates', body: { rooms: [] } }),
  'noise.cart': () => ({ method: 'POST', route: '/wc/store/v1/cart/add-item', body: { quantity: 1 } }),
  'noise.preview': () => ({
    method: 'POST',
    route: '/wp/v2/block-renderer/core/archives?context=edit',
    body: { attributes: {} },
  }),
  // The post that an image is attached to decides what anonymous clients see of it.
  'posts.update.image': (pools, random) =>
    update(
      `/wp/v2/posts/${oneOf(pools, 'posts', random)}`,
      { featured_media: oneOf(pools, 'media', random) },
      random,
    ),
  'posts.update.status': (pools, random) =>
    update(
      `/wp/v2/posts/${oneOf(pools, 'posts', random)}`,
      { status: random.pick(['publish', 'publish', 'draft', 'private']) },
      random,
    ),
  'media.update.post': (pools, random) =>
    update(`/wp/v2/media/${oneOf(pools, 'media', random)}`, { post: oneOf(pools, 'posts', random) }, random),
  'users.update.role': (_, random) =>
    update(`/wp/v2/users/${userIds.editor}`, { roles: [random.pick(['editor', 'subscriber'])] }, random),
  'global-styles.update': (pools, random) =>
    update(
      `/wp/v2/global-styles/${oneOf(pools, 'global-styles', random)}`,
      someOf(
        [
          () => ({ title: text(random) }),
          () => ({ styles: { color: { background: `#${100 + random.int(900)}` } } }),
          () => ({ styles: { spacing: { blockGap: `${random.int(40)}px` } } }),
          () => ({ settings: { layout: { contentSize: `${500 + random.int(300)}px` } } }),
        ],
        random,
      ),
      random,
    ),
  'sidebars.update': (pools, random) =>
    update('/wp/v2/sidebars/wp_inactive_widgets', { widgets: random.some(pools.widgets, 3) }, random),
  'templates.create': (_, random) => ({
    method: 'POST',
    route: '/wp/v2/templates',
    body: { slug: `own-${random.int(3)}`, title: text(random), content: text(random) },
  }),
  'template-parts.create': (_, random) => ({
    method: 'POST',
    route: '/wp/v2/template-parts',
    body: { slug: `own-${random.int(3)}`, title: text(random), content: text(random), area: 'uncategorized' },
  }),
  'templates.update': (pools, random) =>
    update(
      `/wp/v2/templates/${theme}//${random.pick(['single', 'page'])}`,
      { content: content(pools, random) },
      random,
    ),
  'templates.delete': (_, random) => ({
    method: 'DELETE',
    route: `/wp/v2/templates/${theme}//${random.pick(['single', 'page', 'own-0', 'own-1', 'own-2'])}?force=true`,
  }),
  'template-parts.update': (pools, random) =>
    update(
      `/wp/v2/template-parts/${theme}//${random.pick(templateParts)}`,
      { content: content(pools, random) },
      random,
    ),
  'template-parts.delete': (_, random) => ({
    method: 'DELETE',
    route: `/wp/v2/template-parts/${theme}//${random.pick([...templateParts, 'own-0', 'own-1', 'own-2'])}?force=true`,
  }),
  'settings.update': (pools, random) =>
    update(
      '/wp/v2/settings',
      someOf(
        [
          () => ({ title: text(random) }),
          () => ({ description: text(random) }),
          () => ({ posts_per_page: 3 + random.int(9) }),
          () => ({ default_category: oneOf(pools, 'categories', random) }),
          () => ({ timezone: random.pick(['Europe/Paris', 'UTC']) }),
          () => ({ show_on_front: 'page', page_on_front: oneOf(pools, 'pages', random) }),
          () => ({ show_on_front: 'posts' }),
          () => ({ site_logo: oneOf(pools, 'media', random) }),
          () => ({ date_format: random.pick(['F j, Y', 'Y-m-d']) }),
          () => ({ time_format: random.pick(['g:i a', 'H:i']), start_of_week: random.int(7) }),
        ],
        random,
      ),
      random,
    ),
  'widgets.create': (_, random) => ({
    method: 'POST',
    route: '/wp/v2/widgets',
    body: { id_base: 'block', sidebar: 'wp_inactive_widgets', instance: { raw: { content: text(random) } } },
  }),
  'widgets.update': (pools, random) =>
    update(
      `/wp/v2/widgets/${oneOf(pools, 'widgets', random)}`,
      { instance: { raw: { content: text(random) } } },
      random,
    ),
  'widgets.delete': (pools, random) => ({
    method: 'DELETE',
    route: `/wp/v2/widgets/${oneOf(pools, 'widgets', random)}?force=true`,
  }),
}

const ofCollection = ([pool, { create, update: change, remove }]: [string, Changes]): [
  string,
  MakeOperation,
][] => {
  const root = rootOf(pool as Pool)
  const made: [string, MakeOperation][] = []
  if (create !== undefined) {
    made.push([
      `${pool}.create`,
      (pools, random) => ({ method: 'POST', route: root, body: create(pools, random) }),
    ])
  }
  if (change !== undefined) {
    made.push([
      `${pool}.update`,
      (pools, random) =>
        update(`${root}/${oneOf(pools, pool as Pool, random)}`, change(pools, random), random),
    ])
  }
  if (remove !== undefined) {
    made.push([
      `${pool}.delete`,
      (pools, random) => ({
        method: 'DELETE',
        route: `${root}/${oneOf(pools, pool as Pool, random)}${remove(random, pools)}`,
      }),
    ])
  }
  return made
}

/** What can be asked of the interface, by collection and action. */
export const operations: Readonly<Record<string, MakeOperation>> = {
  ...Object.fromEntries(Object.entries(collections).flatMap(ofCollection)),
  ...others,
}
