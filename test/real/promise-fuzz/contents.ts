import type { Pool, Pools } from './pools.ts'
import type { Random } from './random.ts'

const words = ['oak', 'fern', 'moss', 'reed', 'soil', 'light', 'water', 'Zinnia', 'aster', 'Plant', 'root']

export const text = (random: Random): string =>
  Array.from({ length: 1 + random.int(3) }, () => random.pick(words)).join(' ')

/** An item of a pool; where there is none, one that does not exist. */
export const oneOf = (pools: Pools, pool: Pool, random: Random): string =>
  pools[pool].length === 0 ? '999999' : random.pick(pools[pool])

type Piece = (pools: Pools, random: Random) => string

const theme = 'twentytwentyfour'
export const templateParts = ['header', 'footer'] as const

const paragraph = (inner: string): string => `<!-- wp:paragraph -->\n<p>${inner}</p>\n<!-- /wp:paragraph -->`

const shortcode = (inner: string): string => `<!-- wp:shortcode -->\n${inner}\n<!-- /wp:shortcode -->`

const query = (inner: string, more = ''): string =>
  `<!-- wp:query {"queryId":1,"query":{"perPage":3,"postType":"post","order":"desc","orderBy":"date","inherit":false${more}}} -->` +
  `<div class="wp-block-query"><!-- wp:post-template -->${inner}<!-- /wp:post-template -->` +
  '<!-- wp:query-pagination --><!-- wp:query-pagination-numbers /--><!-- /wp:query-pagination -->' +
  '<!-- wp:query-no-results --><!-- wp:paragraph --><p>none</p><!-- /wp:paragraph --><!-- /wp:query-no-results --></div><!-- /wp:query -->'

/** What a content may be made of: texts, blocks that keep what they show, and those that render other things anew. */
const pieces: readonly Piece[] = [
  (_, random) => paragraph(text(random)),
  (_, random) =>
    `<!-- wp:latest-posts {"postsToShow":${2 + random.int(3)},"displayAuthor":true,"displayFeaturedImage":true,"displayPostContent":true} /-->`,
  (pools, random) =>
    `<!-- wp:latest-posts {"categories":[{"id":${oneOf(pools, 'categories', random)}}]} /-->`,
  () => '<!-- wp:latest-comments {"commentsToShow":5} /-->',
  () => '<!-- wp:archives {"showPostCounts":true} /-->',
  () => '<!-- wp:calendar /-->',
  () => '<!-- wp:categories {"showPostCounts":true,"showHierarchy":true} /-->',
  () => '<!-- wp:tag-cloud {"showTagCounts":true} /-->',
  () => '<!-- wp:page-list /-->',
  (pools, random) => `<!-- wp:page-list {"parentPageID":${oneOf(pools, 'pages', random)}} /-->`,
  () => '<!-- wp:site-title /-->\n<!-- wp:site-tagline /-->\n<!-- wp:site-logo /-->',
  () =>
    query(
      '<!-- wp:post-title {"isLink":true} /--><!-- wp:post-terms {"term":"category"} /--><!-- wp:post-date /-->',
    ),
  () => query('<!-- wp:post-author-name /--><!-- wp:post-excerpt /--><!-- wp:post-featured-image /-->'),
  () => query('<!-- wp:post-content /-->'),
  // As many as the settings say.
  () =>
    '<!-- wp:query {"queryId":2,"query":{"postType":"post","inherit":false}} --><div class="wp-block-query"><!-- wp:post-template --><!-- wp:post-date {"format":null} /--><!-- /wp:post-template --></div><!-- /wp:query -->',
  () =>
    query('<!-- wp:post-comments-count /--><!-- wp:post-terms {"term":"post_tag"} /-->', ',"sticky":"only"'),
  (pools, random) => query('<!-- wp:post-title /-->', `,"author":"${oneOf(pools, 'users', random)}"`),
  (pools, random) => `<!-- wp:navigation {"ref":${oneOf(pools, 'navigation', random)}} /-->`,
  (pools, random) => `<!-- wp:block {"ref":${oneOf(pools, 'blocks', random)}} /-->`,
  (_, random) => `<!-- wp:template-part {"slug":"${random.pick(templateParts)}","theme":"${theme}"} /-->`,
  (pools, random) => shortcode(`[garden-note id="${oneOf(pools, 'notes', random)}"]`),
  (pools, random) => shortcode(`[garden-plain id="${oneOf(pools, 'notes', random)}"]`),
  (pools, random) => `<!-- wp:garden/note {"id":${oneOf(pools, 'notes', random)}} /-->`,
  () => shortcode('[garden-menu]'),
  (pools, random) =>
    shortcode(`[gallery ids="${oneOf(pools, 'media', random)},${oneOf(pools, 'media', random)}"]`),
  () => shortcode('[gallery]'),
  (pools, random) => {
    const id = oneOf(pools, 'media', random)
    return `<!-- wp:image {"id":${id},"sizeSlug":"full"} -->\n<figure class="wp-block-image size-full"><img src="/leaf.png" alt="" class="wp-image-${id}"/></figure>\n<!-- /wp:image -->`
  },
  (pools, random) =>
    `<!-- wp:cover {"useFeaturedImage":true} --><div class="wp-block-cover"><div class="wp-block-cover__inner-container">${paragraph(text(random))}</div></div><!-- /wp:cover --><!-- wp:avatar {"userId":${oneOf(pools, 'users', random)}} /-->`,
  () => '<!-- wp:post-featured-image /-->',
  () =>
    '<!-- wp:post-title /--><!-- wp:post-terms {"term":"post_tag"} /--><!-- wp:post-terms {"term":"category"} /-->',
  () => '<!-- wp:post-author {"showBio":true} /--><!-- wp:post-author-biography /-->',
  () =>
    '<!-- wp:post-navigation-link {"type":"next","showTitle":true} /--><!-- wp:post-navigation-link {"type":"previous","showTitle":true} /-->',
  () =>
    '<!-- wp:comments --><div class="wp-block-comments"><!-- wp:comments-title /--><!-- wp:comment-template --><!-- wp:comment-author-name /--><!-- wp:comment-content /--><!-- /wp:comment-template --></div><!-- /wp:comments -->',
  () => '<!-- wp:home-link {"label":"Home"} /--><!-- wp:loginout /--><!-- wp:search {"label":"Search"} /-->',
  (pools, random) =>
    `<!-- wp:navigation --><!-- wp:navigation-link {"label":"x","type":"page","id":${oneOf(pools, 'pages', random)},"kind":"post-type","url":"/x"} /--><!-- wp:page-list /--><!-- /wp:navigation -->`,
  (_, random) =>
    `<!-- wp:pattern {"slug":"twentytwentyfour/${random.pick(['posts-list', 'hidden-posts-heading', 'footer'])}"} /-->`,
  (_, random) =>
    `<!-- wp:legacy-widget {"idBase":"${random.pick(['recent-posts', 'recent-comments', 'categories', 'pages', 'nav_menu', 'tag_cloud'])}","instance":{"encoded":"YTowOnt9","hash":"x","raw":{}}} /-->`,
  () => '<!-- wp:read-more /--><!-- wp:post-excerpt /-->',
  () => '<!-- wp:freeform --><p>plain</p><!--more--><p>more</p><!-- /wp:freeform -->',
]

export const content = (pools: Pools, random: Random): string =>
  Array.from({ length: 1 + random.int(2) }, () => random.pick(pieces)(pools, random)).join('\n\n')

/** Of a synced pattern, which is often a text: it leaves no trace where it stands. */
export const pattern = (pools: Pools, random: Random): string =>
  random.chance(0.5) ? paragraph(text(random)) : content(pools, random)

export const navigationContent = (pools: Pools, random: Random): string =>
  random.pick([
    '<!-- wp:page-list /-->',
    `<!-- wp:navigation-link {"label":"${text(random)}","url":"/x"} /-->`,
    `<!-- wp:navigation-link {"label":"p","type":"page","id":${oneOf(pools, 'pages', random)},"kind":"post-type","url":"/x"} /-->`,
    '<!-- wp:home-link {"label":"Home"} /-->',
  ])
