import { ask, json, type RequestCase, read, withContent, withHeaders, words } from '../request-case.ts'

const anonymous: readonly string[] = words(`
  /posts/4 /posts/5?_fields=id /posts/4?_embed /posts/4?context=embed /posts/4?context=edit
  /posts/4?context=x /posts/108 /posts/108?password=secret /posts/108?password=wrong
  /posts/108?password= /posts/108?password[]=a /posts/109 /posts/110 /posts/999999 /posts/0 /posts/-1
  /posts/x /posts/4x /posts/4/ /posts/0004 /posts/4?excerpt_length=5 /posts/4?excerpt_length=x
  /posts/112 /posts/121 /posts/4?id=4 /posts/4?id=5 /posts/4?_envelope=1 /posts/999999?_envelope=1
  /posts/4?_jsonp=cb&_fields=id /posts/4?_pretty&_fields=id /posts/4?_fields=_links
  /posts/4?_fields=title.rendered,content.protected /posts/4?foo=bar&_fields=id /posts/4?
  /posts/99999999999999999999 /posts/4.0 /posts/%34 /posts/4%20 /posts/4%00 /posts//4 /posts/4//
  /posts/4/revisions /posts/4/revisions/1 /posts/4/autosaves /posts/4/nope /posts/999999/revisions
  /posts/4/revisions?parent=5 /posts/4/revisions?per_page=0 /pages/112 /pages/112?_fields=id,parent
  /pages/4 /pages/2?excerpt_length=1 /pages/999999 /media/121 /media/121?context=embed /media/999999
  /media/4 /media/121?context=nope /menu-items/125 /menu-items/999999 /blocks/134
  /blocks/134?context=edit /blocks/999999 /navigation /templates /template-parts
  /templates/twentytwentyfour//home /templates/nope//nope /template-parts/twentytwentyfour//header
  /templates/lookup /global-styles/138 /global-styles/999999 /global-styles/themes/twentytwentyfour
  /global-styles/themes/nope /global-styles/themes/twentytwentyfour/variations / /nope /posts/nope/x
  /POSTS /Posts/4?_fields=id /posts/?per_page=1&_fields=id /posts%2F4 /posts/../pages
  /posts/%2e%2e/pages /posts/4%5C /posts/4;x=1 /posts/4%3Fa=1 /p%6Fsts /posts/caf%C3%A9 /posts/%FF
  /posts/4%0A`)

const byAdmin: readonly string[] = words(`
  /posts/4?context=edit /posts/109?_fields=id,status /posts/110?_fields=id
  /posts/108?context=edit&_fields=content /posts/999999 /posts/999999?context=edit /posts/4/revisions
  /posts/4/revisions?per_page=1 /posts/4/autosaves /posts/4/revisions/999999
  /posts/4/revisions?orderby=bar /posts/4/revisions?page=9 /posts/4/revisions?offset=9
  /posts/999999/revisions /posts/4/autosaves/999999 /pages/112?context=edit&_fields=id,template
  /media/121?context=edit /menu-items/125 /menu-items/125?context=edit /menu-items/999999
  /menu-items/125/autosaves /blocks/134?context=edit /blocks/134/revisions /blocks/999999
  /navigation?context=edit /templates/twentytwentyfour//home /templates/nope//nope
  /templates/twentytwentyfour/home?_fields=id,wp_id /templates/twentytwentyfour%2F%2Fhome?_fields=id
  /templates/twentytwentyfour////home?_fields=id /templates/twentytwentyfour//home/revisions
  /templates/twentytwentyfour//home/autosaves /template-parts/twentytwentyfour//header
  /global-styles/138
  /global-styles/138?context=edit /global-styles/138/revisions
  /global-styles/themes/twentytwentyfour?_fields=styles.color /global-styles/themes/nope
  /global-styles/x /global-styles/%2B138`)

const deletes: readonly string[] = words(`
  /posts/4 /posts/999999 /posts/4?force=x /media/121 /menu-items/125 /blocks/134
  /templates/twentytwentyfour//home /categories/2 /tags/8 /users/2 /users/2?reassign=1 /comments/1
  /posts /posts/4/revisions/1 /settings`)

const oembeds: readonly string[] = words(`
  /oembed/1.0/embed /oembed/1.0/embed?url= /oembed/1.0/embed?url=nope
  /oembed/1.0/embed?url=http://elsewhere.example/ /oembed/1.0/embed?url[]=a
  /oembed/1.0/embed?format=xml /oembed/1.0/embed?url=x&maxwidth=a /oembed/1.0/proxy
  /oembed/1.0/proxy?url=http://x.example/ /oembed/1x0/embed /oembed/1.0/nope /batch/v1 /wp/v3/posts
  /nope/v1 /nope /wp /wp/v2x/posts /WP/V2/posts?per_page=1&_fields=id`)

const override = { 'X-HTTP-Method-Override': 'DELETE' }

/** Items, unusual methods and fields, and everything that no anonymous caller may do: nothing here changes anything. */
export const itemCases: readonly RequestCase[] = [
  ...anonymous.map((path) => read(`/wp/v2${path}`)),
  ...byAdmin.map((path) => read(`/wp/v2${path}`, 'admin')),
  ...deletes.map((path) => ask('DELETE', `/wp/v2${path}`)),
  ...oembeds.map((target) => read(target)),
  read('/wp/v2'),
  ...words(`
  /posts /posts/4 /media/121 /users/me /settings`).map((path) =>
    read(`/wp/v2${path}?context=edit&_fields=id`, 'subscriber'),
  ),
  ...words(`
  /posts/109 /posts/110 /posts/4/revisions /blocks/134 /templates`).map((path) =>
    read(`/wp/v2${path}?_fields=id`, 'subscriber'),
  ),
  ...words(`
  /posts/109 /posts/110 /posts/4/revisions /users?context=edit /settings`).map((path) =>
    read(`/wp/v2${path}`, 'editor'),
  ),
  ...words(`
  /posts?per_page=2 /posts/4 /posts/999999 /posts?per_page=0 /posts/109 /pages /media/121 /blocks
  /nope`).map((path) => ask('HEAD', `/wp/v2${path}`)),
  ask('HEAD', '/wp/v2/posts?context=edit&per_page=1', 'admin'),
  ...words(`
  PATCH PUT FOO PROPFIND`).map((method) => ask(method, '/wp/v2/posts')),
  ...['POST', 'PUT', 'DELETE'].map((method) => ask(method, '/wp/v2/nope')),
  ask('PUT', '/wp/v2/posts/4/revisions', 'admin'),
  ask('POST', '/wp/v2/posts/4/revisions/1', 'admin'),
  ask('POST', '/wp/v2'),
  ask('PUT', '/batch/v1', 'admin'),
  ask('OPTIONS', '/wp/v2/nope'),
  ask('OPTIONS', '/nope'),
  withHeaders(read('/wp/v2/posts/4'), override),
  read('/wp/v2/posts/4?_method=DELETE'),
  withHeaders(ask('POST', '/wp/v2/posts/4'), override),
  ask('POST', '/wp/v2/posts/4?_method=DELETE'),
  withHeaders(ask('POST', '/wp/v2/posts/4'), { 'X-HTTP-Method-Override': 'GET' }),
  withHeaders(read('/wp/v2/posts/4?_fields=id'), { 'X-HTTP-Method-Override': 'GET' }),
  read('/wp/v2/posts/4?rest_route=/wp/v2/pages'),
  withContent(read('/wp/v2/posts?_fields=id'), 'application/json', '{"per_page":1}'),
  withContent(read('/wp/v2/posts?_fields=id&per_page=2'), 'application/x-www-form-urlencoded', 'per_page=1'),
  withHeaders(read('/wp/v2/posts?per_page=1'), { 'X-WP-Nonce': 'bad' }),
  withHeaders(read('/wp/v2/posts/4?_fields=id'), { Authorization: 'Basic YWRtaW46d3Jvbmc=' }),
  withHeaders(read('/wp/v2/posts/4?_fields=id'), { Authorization: 'Bearer xyz' }),
  withHeaders(read('/wp/v2/users/me'), { Authorization: 'Basic YWRtaW46d3Jvbmc=' }),
  withHeaders(read('/wp/v2/posts?per_page=1&_fields=id'), { Accept: 'text/html' }),
  withHeaders(read('/wp/v2/posts/4?_fields=id'), { 'If-Modified-Since': 'Sat, 21 Nov 2020 23:00:00 GMT' }),
  withHeaders(read('/wp/v2/posts/4?_fields=id'), { Origin: 'https://example.com' }),
  json('POST', '/wp/v2/posts', { title: 'q' }, 'anonymous'),
  json('POST', '/wp/v2/posts', '{', 'anonymous'),
  json('POST', '/wp/v2/posts', { status: 'nope' }, 'anonymous'),
  json('PUT', '/wp/v2/posts/999999', { title: 'x' }, 'anonymous'),
  json('PUT', '/wp/v2/posts/4', { title: 'x' }, 'anonymous'),
  json('PUT', '/wp/v2/posts/4', { title: 'x' }, 'subscriber'),
  json('POST', '/wp/v2/posts', { title: 'x' }, 'subscriber'),
  json('POST', '/wp/v2/categories', { name: 'x' }, 'anonymous'),
  json('POST', '/wp/v2/categories', { name: 'x' }, 'subscriber'),
  json('POST', '/wp/v2/categories', {}, 'anonymous'),
  json('POST', '/wp/v2/comments', { post: 4 }, 'anonymous'),
  json('POST', '/wp/v2/users', {}, 'anonymous'),
  json('POST', '/wp/v2/settings', { title: 'x' }, 'editor'),
  json('POST', '/wp/v2/media', {}, 'anonymous'),
  json('POST', '/wp/v2/media/121/edit', {}, 'anonymous'),
  json('POST', '/wp/v2/media/121/post-process', {}, 'anonymous'),
]
