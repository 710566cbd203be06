import { oneOf, templateParts, text } from './contents.ts'
import type { Pool, Pools } from './pools.ts'
import type { Random } from './random.ts'
import type { Read } from './site-under-fuzz.ts'

type Route = (one: (pool: Pool) => string, random: Random) => string

const theme = 'twentytwentyfour'

/** Public routes. The first route of each line is read most often with other arguments. */
const publicRoutes: readonly Route[] = [
  (one) => `/wp/v2/posts/${one('posts')}`,
  (one) => `/wp/v2/posts/${one('posts')}`,
  (one) => `/wp/v2/posts/${one('posts')}?_embed=true`,
  (one) => `/wp/v2/posts/${one('posts')}?_fields=id,title,categories,tags`,
  () => '/wp/v2/posts',
  () => '/wp/v2/posts?_embed=true&per_page=5',
  () => '/wp/v2/posts?per_page=4&offset=3&_fields=id,title,slug',
  () => '/wp/v2/posts?orderby=modified&per_page=5',
  () => '/wp/v2/posts?orderby=title&order=asc&per_page=5',
  () => '/wp/v2/posts?sticky=true',
  (one) => `/wp/v2/posts?categories=${one('categories')}`,
  (one) => `/wp/v2/posts?categories_exclude=${one('categories')}&per_page=5`,
  (one) => `/wp/v2/posts?tags=${one('tags')}`,
  (one) => `/wp/v2/posts?tags_exclude=${one('tags')}&per_page=5`,
  (one) => `/wp/v2/posts?author=${one('users')}&per_page=5`,
  (one) => `/wp/v2/posts?include=${one('posts')},${one('posts')}`,
  (one) => `/wp/v2/posts?exclude=${one('posts')}&per_page=4&_fields=id`,
  (_, random) => `/wp/v2/posts?search=${random.pick(['oak', 'fern', 'Plant', 'zinnia'])}&per_page=5`,
  () => '/wp/v2/posts?after=2025-05-01T00:00:00&per_page=5',
  () => '/wp/v2/posts?modified_after=2026-01-01T00:00:00&per_page=5',
  (_, random) => `/wp/v2/posts?slug=${random.pick(['oak', 'fern', 'moss'])}`,
  (one) => `/wp/v2/pages/${one('pages')}`,
  (one) => `/wp/v2/pages/${one('pages')}`,
  (one) => `/wp/v2/pages/${one('pages')}?_embed=true`,
  () => '/wp/v2/pages',
  () => '/wp/v2/pages?orderby=menu_order&order=asc&per_page=100&_fields=id,title,link,parent',
  (one) => `/wp/v2/pages?parent=${one('pages')}`,
  () => '/wp/v2/pages?parent=0&_fields=id,title',
  (_, random) => `/wp/v2/pages?search=${text(random).split(' ')[0]}`,
  (one) => `/wp/v2/categories/${one('categories')}`,
  () => '/wp/v2/categories',
  () => '/wp/v2/categories?hide_empty=true&orderby=count&order=desc',
  (one) => `/wp/v2/categories?post=${one('posts')}`,
  (one) => `/wp/v2/categories?parent=${one('categories')}`,
  (one) => `/wp/v2/tags/${one('tags')}`,
  () => '/wp/v2/tags',
  () => '/wp/v2/tags?orderby=count&order=desc',
  (one) => `/wp/v2/tags?post=${one('posts')}`,
  (_, random) => `/wp/v2/tags?search=${random.pick(['oak', 'fern', 'Season'])}`,
  () => '/wp/v2/media?_fields=id,title,post,caption',
  () => '/wp/v2/media?_embed=true',
  (one) => `/wp/v2/media/${one('media')}`,
  (one) => `/wp/v2/media?parent=${one('posts')}`,
  () => '/wp/v2/comments',
  () => '/wp/v2/comments?_embed=true',
  (one) => `/wp/v2/comments?post=${one('posts')}`,
  (one) => `/wp/v2/comments/${one('comments')}`,
  (one) => `/wp/v2/comments?parent=${one('comments')}`,
  () => '/wp/v2/users',
  (one) => `/wp/v2/users/${one('users')}`,
  () => '/wp/v2/users?_embed=true',
  (_, random) => `/wp/v2/search?search=${random.pick(['oak', 'fern', 'Plant', 'Garden'])}`,
  (_, random) => `/wp/v2/search?search=${random.pick(['oak', 'Season', 'Trees'])}&type=term`,
  (_, random) => `/wp/v2/search?search=${random.pick(['oak', 'Garden'])}&_embed=true`,
  (one) => `/wp/v2/navigation/${one('navigation')}`,
  () => '/wp/v2/navigation',
  () => '/wp/v2/types',
  () => '/wp/v2/taxonomies',
  () => '/wp/v2/statuses',
  () => '/?_fields=name,description',
  () => '/wp/v2',
  // The plugin of the tests takes this host for its own.
  (one) => `/oembed/1.0/embed?url=http%3A%2F%2Fwordpress.test%2F%3Fp%3D${one('posts')}`,
  (one) => `/oembed/1.0/embed?url=http%3A%2F%2Fwordpress.test%2F%3Fp%3D${one('pages')}`,
  () => '/garden-notes/v1/notes',
  (one) => `/garden-notes/v1/notes/${one('notes')}`,
]

const editors: readonly Route[] = [
  (one) => `/wp/v2/posts/${one('posts')}?context=edit`,
  (one) => `/wp/v2/posts/${one('posts')}`,
  () => '/wp/v2/posts?status=draft,trash,future,pending,private&context=edit&_fields=id,title,status',
  () => '/wp/v2/posts?status=any&per_page=6&_fields=id,title,status',
  (one) => `/wp/v2/posts/${one('posts')}/revisions`,
  (one) => `/wp/v2/posts/${one('posts')}/autosaves`,
  (one) => `/wp/v2/pages/${one('pages')}?context=edit&_embed=true`,
  (one) => `/wp/v2/pages/${one('pages')}/revisions`,
  (one) => `/wp/v2/blocks/${one('blocks')}`,
  () => '/wp/v2/blocks',
  (one) => `/wp/v2/blocks?wp_pattern_category=${one('wp_pattern_category')}`,
  () => '/wp/v2/wp_pattern_category',
  () => '/wp/v2/menus',
  (one) => `/wp/v2/menus/${one('menus')}`,
  () => '/wp/v2/menu-items',
  (one) => `/wp/v2/menu-items?menus=${one('menus')}&_fields=id,title,url,menu_order,parent`,
  (one) => `/wp/v2/menu-items/${one('menu-items')}`,
  () => '/wp/v2/menu-items?_embed=true',
  () => '/wp/v2/menu-locations',
  (one) => `/wp/v2/navigation/${one('navigation')}?context=edit`,
  (one) => `/wp/v2/navigation/${one('navigation')}/revisions`,
  () => '/wp/v2/templates?_fields=id,title,source,content',
  (_, random) => `/wp/v2/templates/${theme}//${random.pick(['single', 'page', 'index'])}`,
  (_, random) => `/wp/v2/template-parts/${theme}//${random.pick(templateParts)}`,
  () => '/wp/v2/template-parts',
  () => '/wp/v2/users?context=edit',
  () => '/wp/v2/users/me?context=edit',
  (one) => `/wp/v2/users/${one('users')}?context=edit`,
  () => '/wp/v2/comments?status=any&context=edit',
  () => '/wp/v2/comments?status=hold&_fields=id,status',
  () => '/wp/v2/settings',
  () => '/wp/v2/themes',
  () => '/wp/v2/plugins',
  () => '/wp/v2/sidebars',
  () => '/wp/v2/widgets',
  () => '/wp/v2/widget-types?_fields=id,name',
  () => `/wp/v2/global-styles/themes/${theme}`,
  (one) => `/wp/v2/global-styles/${one('global-styles')}?context=edit`,
  (one) => `/wp/v2/global-styles/${one('global-styles')}/revisions`,
  () => '/wp/v2/sidebars/wp_inactive_widgets',
  (one) => `/wp/v2/widgets/${one('widgets')}`,
  (_, random) =>
    `/wp/v2/block-renderer/core/${random.pick(['latest-posts', 'archives', 'categories', 'latest-comments', 'tag-cloud', 'page-list'])}?context=edit`,
  (one) => `/wp/v2/media/${one('media')}?context=edit`,
  (one) => `/wp/v2/media?include=${one('media')}&_embed=true`,
  () => '/wp/v2/search?search=oak&subtype=page',
]

/** Routes on which a subscriber is refused what an editor is shown. */
const editorsOwn: readonly Route[] = [
  () => '/wp/v2/blocks',
  () => '/wp/v2/types?context=edit',
  () => '/wp/v2/users/me?context=edit',
  (one) => `/wp/v2/posts/${one('posts')}?context=edit`,
]

const anyRead = (pools: Pools, random: Random): Read => {
  const caller = random.chance(0.65) ? 'anonymous' : random.chance(0.08) ? 'editor' : 'admin'
  if (caller === 'editor') {
    return { caller, route: random.pick(editorsOwn)((pool) => oneOf(pools, pool, random), random) }
  }
  const routes =
    caller === 'anonymous' ? publicRoutes : [...editors, ...(random.chance(0.3) ? publicRoutes : [])]
  return { caller, route: random.pick(routes)((pool) => oneOf(pools, pool, random), random) }
}

/** A random read; with `focus` more of those whose route matches. */
export const chooseRead = (pools: Pools, random: Random, focus?: RegExp): Read => {
  const wanted = focus === undefined || random.chance(0.3) ? /./ : focus
  for (let tries = 0; tries < 40; tries += 1) {
    const read = anyRead(pools, random)
    if (wanted.test(read.route)) return read
  }
  return anyRead(pools, random)
}
