import { ask, type RequestCase, read, reads, words } from '../request-case.ts'

/** Routes that no row lists: their rows are made of what WordPress says of them. */
export const learnedCases: readonly RequestCase[] = [
  ...reads(
    '/wp/v2/categories',
    words(`
  per_page=2 per_page=2.0 per_page=0 per_page=x page=2&per_page=2 page=9 hide_empty=true
  hide_empty=yes parent=2 parent=x post=4 orderby=count&order=desc orderby=bar slug=trees
  include=3,2&orderby=include include[a]=1 exclude=1 search=Tree context=edit context=foo
  _fields=id,name _embed offset=2 offset=-1 orderby=include_slugs&slug=herbs,ferns slug=herbs,ferns`),
  ),
  ...reads(
    '/wp/v2/tags',
    words(`
  per_page=3 post=4 offset=6 search=Season orderby=term_group page=0 include=8,7`),
  ),
  ...reads(
    '/wp/v2/users',
    words(`
  per_page=2 who=authors roles=editor capabilities=edit_posts has_published_posts=true context=edit
  has_published_posts=post has_published_posts=nope orderby=email orderby=name search=ed slug=admin`),
  ),
  ...reads(
    '/wp/v2/users',
    words(`
  roles=editor roles=editor,nope context=edit&_fields=id,roles orderby=email who=x search=ed`),
    'admin',
  ),
  ...reads(
    '/wp/v2/comments',
    words(`
  per_page=2 post=4 post=4,1 post=x status=hold type=comment author=1 author_email=a@b.c
  after=2025-01-01T00:00:00 after=x orderby=date_gmt&order=asc parent=0 page=9 search=Remark
  password=x`),
  ),
  ...reads(
    '/wp/v2/comments',
    ['status=hold', 'author_email=nope', 'author_email=reader1@example.org', 'karma=1'],
    'admin',
  ),
  ...reads(
    '/wp/v2/search',
    words(`
  search=garden search=day&per_page=3 type=term&search=Tree type=nope subtype=page&search=Garden
  subtype=nope subtype=post,page&per_page=2 type=post-format page=0 include=5 exclude=5&per_page=2
  type=term&subtype=category type=term&subtype=page _embed&per_page=1 context=edit
  context=embed&per_page=1`),
  ),
  ...words(`
  /wp/v2/categories /wp/v2/categories/2 /wp/v2/categories/999999 /wp/v2/categories/x
  /wp/v2/categories/2/ /wp/v2/categories/2?context=embed /wp/v2/categories/2?context=zzz
  /wp/v2/categories/2?id=3 /wp/v2/tags /wp/v2/tags/8 /wp/v2/tags/2 /wp/v2/users /wp/v2/users/1
  /wp/v2/users/4 /wp/v2/users/me /wp/v2/users/0 /wp/v2/comments /wp/v2/comments/1 /wp/v2/comments/99
  /wp/v2/search /wp/v2/types /wp/v2/types/post /wp/v2/types/nope /wp/v2/types/wp_block
  /wp/v2/types?context=edit /wp/v2/statuses /wp/v2/statuses/publish /wp/v2/statuses/draft
  /wp/v2/taxonomies /wp/v2/taxonomies?type=post /wp/v2/taxonomies/category /wp/v2/taxonomies/nope
  /wp/v2/taxonomies?type[]=post /wp/v2/settings /wp/v2/themes /wp/v2/plugins /wp/v2/menus
  /wp/v2/menus/15 /wp/v2/menu-locations /wp/v2/menu-locations/nope /wp/v2/sidebars /wp/v2/widget-types
  /wp/v2/widgets /wp/v2/block-types /wp/v2/font-families /wp/v2/font-collections
  /wp/v2/wp_pattern_category /wp/v2/wp_pattern_category/1 /wp/v2/block-patterns/categories
  /wp/v2/navigation/133 /wp/v2/navigation/133/revisions /wp/v2/block-directory/search
  /wp-site-health/v1/tests/page-cache /wp-block-editor/v1/url-details
  /wp-block-editor/v1/url-details?url=nope /wp-block-editor/v1/navigation-fallback
  /wp/v2/users/1/application-passwords /wp/v2/block-renderer/core/archives
  /wp/v2/block-types/core/paragraph`).map((target) => read(target)),
  ...words(`
  /wp/v2/categories/2?context=edit /wp/v2/users/me?_fields=id,slug /wp/v2/settings?_fields=title
  /wp/v2/types?context=edit /wp/v2/menus?_fields=id,slug /wp/v2/menus/15?_fields=id,name
  /wp/v2/menu-locations /wp/v2/statuses /wp/v2/wp_pattern_category
  /wp/v2/block-types?namespace=core&_fields=name /wp/v2/block-types/core?_fields=name
  /wp/v2/block-types/core/nope /wp/v2/themes?_fields=stylesheet /wp/v2/themes?status=nope
  /wp/v2/plugins?_fields=plugin,status /wp/v2/widget-types?_fields=id /wp/v2/sidebars?_fields=id
  /wp/v2/font-families /wp/v2/font-collections /wp/v2/font-collections?page=2
  /wp/v2/block-renderer/core/archives /wp/v2/block-renderer/core/archives?context=edit
  /wp/v2/block-renderer/core/nope?context=edit /wp/v2/navigation/133?_fields=id
  /wp-block-editor/v1/navigation-fallback?_fields=id /wp/v2/block-patterns/categories?_fields=name
  /wp-block-editor/v1/url-details?url=nope /wp-block-editor/v1/url-details
  /wp/v2/search?search=garden&_fields=id`).map((target) => read(target, 'admin')),
  ask('HEAD', '/wp/v2/categories?per_page=2'),
  ask('HEAD', '/wp/v2/tags/8'),
  ask('PATCH', '/wp/v2/categories'),
  ask('POST', '/wp/v2/statuses', 'admin'),
  ask('DELETE', '/wp/v2/types/post', 'admin'),
]
