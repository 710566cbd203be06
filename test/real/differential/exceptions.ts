import type { Aspect } from './compare.ts'

/** Cases that differ on purpose, and in what. */
export type Exception = {
  readonly reason: string
  readonly aspects: readonly Aspect[]
  readonly cases: readonly string[]
}

/**
 * May be absent from what the gateway refuses itself: `Allow` says what this caller may do, which is a decision of the upstream except
 * for public lists. Where it is there, it is the same.
 */
export const absentFromRefusals: readonly Aspect[] = ['allow']

/** Everything in which a response of the gateway may differ from the response of WordPress. */
export const exceptions: readonly Exception[] = [
  {
    reason: 'an unknown status: WordPress tells anonymous callers nothing, the gateway cannot know who asks',
    aspects: ['content'],
    cases: [
      'GET /wp/v2/posts?status=zzz&_fields=id,slug',
      'GET /wp/v2/posts?status=publish,zzz&_fields=id,slug',
      'GET /wp/v2/posts?status=zzz&sticky=yes&_fields=id,slug',
      'GET /wp/v2/media?status=publish',
    ],
  },
  {
    reason: 'the contract is that of WordPress 6.9, where media_type is a list; this one is 6.7',
    aspects: ['content'],
    cases: ['GET /wp/v2/media?media_type=nope'],
  },
  {
    reason: 'errors of the gateway are plain JSON, whatever wrapping was asked for',
    aspects: ['status', 'content'],
    cases: ['GET /wp/v2/posts?_envelope=1&per_page=0'],
  },
  {
    reason: 'errors of the gateway are plain JSON, whatever wrapping was asked for (script, XML)',
    aspects: ['content', 'content-type'],
    cases: ['GET /wp/v2/posts?_jsonp=cb&per_page=0', 'GET /oembed/1.0/embed?format=xml'],
  },
  {
    reason: 'a list where a text is due: WordPress 6.7 breaks, the gateway refuses',
    aspects: ['status', 'content', 'content-type'],
    cases: ['GET /wp/v2/posts/108?password[]=a'],
  },
  {
    reason: 'the query names another item than the path: refused (docs/decisions/0003)',
    aspects: ['status', 'content'],
    cases: [
      'GET /wp/v2/posts/4?id=5',
      'GET /wp/v2/posts/4/revisions?parent=5',
      'GET /wp/v2/categories/2?id=3',
    ],
  },
  {
    reason:
      'method and route overrides are refused where they hide a write or another route (docs/decisions/0003)',
    aspects: ['status', 'content'],
    cases: [
      'GET /wp/v2/posts/4 X-HTTP-Method-Override: DELETE',
      'GET /wp/v2/posts/4?_method=DELETE',
      'POST /wp/v2/posts/4 X-HTTP-Method-Override: GET',
    ],
  },
  {
    reason:
      'route overrides, and content on GET, would be another request than the one that is keyed (docs/decisions/0003)',
    aspects: ['status', 'content', 'x-wp-total', 'x-wp-totalpages'],
    cases: [
      'GET /wp/v2/posts/4?rest_route=/wp/v2/pages',
      'GET /wp/v2/posts?_fields=id json {"per_page":1}',
      'GET /wp/v2/posts?_fields=id&per_page=2 x-www-form-urlencoded per_page=1',
    ],
  },
  {
    reason: 'paths that an upstream could take for another route are refused (docs/decisions/0002)',
    aspects: ['status', 'content'],
    cases: [
      'GET /wp/v2/posts/99999999999999999999',
      'GET /wp/v2/posts/4%00',
      'GET /wp/v2/posts%2F4',
      'GET /wp/v2/posts/../pages',
      'GET /wp/v2/posts/%2e%2e/pages',
      'GET /wp/v2/posts/4%5C',
      'GET /wp/v2/posts/%FF',
      'GET /wp/v2/posts/4%0A',
    ],
  },
  {
    reason:
      'php -S neither decodes nor merges in paths as nginx does in front of WordPress; the gateway does (docs/decisions/0002)',
    aspects: ['status', 'content', 'allow', 'link'],
    cases: ['GET /wp/v2/posts/%34', 'GET /wp/v2/posts//4'],
  },
  {
    reason: 'the same for a list',
    aspects: ['status', 'content', 'allow', 'link', 'x-wp-total', 'x-wp-totalpages'],
    cases: ['GET /wp/v2/p%6Fsts'],
  },
  {
    reason: 'a template has one identifier, whatever slashes it was asked with (docs/decisions/0002)',
    aspects: ['status', 'content'],
    cases: ['GET /wp/v2/templates/twentytwentyfour%2F%2Fhome?_fields=id (admin)'],
  },
  {
    reason: 'a template has one identifier; WordPress repeats the one in the path',
    aspects: ['content'],
    cases: ['GET /wp/v2/templates/twentytwentyfour////home?_fields=id (admin)'],
  },
  {
    reason: 'a plus in the number of global styles, which 6.9 takes and 6.7 does not',
    aspects: ['content'],
    cases: ['GET /wp/v2/global-styles/%2B138 (admin)'],
  },
  {
    reason: "the gateway's own document, compared with WordPress's in discovery-wordpress.test.ts",
    aspects: ['content'],
    cases: ['GET /wp/v2', 'GET /wp/v2/'],
  },
  {
    reason: 'links in an envelope repeat the canonical query, too',
    aspects: ['content'],
    cases: ['GET /wp/v2/posts?_envelope', 'GET /wp/v2/posts?_envelope=0'],
  },
  {
    reason: 'a method that the parser of the server does not know',
    aspects: ['status', 'content', 'content-type', 'link'],
    cases: ['FOO /wp/v2/posts'],
  },
]

/** What WordPress refuses and the gateway leaves to it. */
export const leftToWordPress: readonly { readonly reason: string; readonly cases: readonly string[] }[] = [
  {
    reason:
      'php -S neither decodes nor merges in paths; the gateway sends the one spelling, which is another request there',
    cases: ['GET /wp/v2/p%6Fsts', 'GET /wp/v2/posts/%34', 'GET /wp/v2/posts//4'],
  },
  {
    reason: 'whether a status may be asked for depends on who asks',
    cases: [
      'GET /wp/v2/posts?status=draft&_fields=id,slug',
      'GET /wp/v2/posts?status=publish,draft&_fields=id,slug',
      'GET /wp/v2/posts?status=any&_fields=id,slug',
      'GET /wp/v2/posts?status=trash&_fields=id,slug',
      'GET /wp/v2/posts?status=private&_fields=id,slug',
      'GET /wp/v2/posts?status=draft (subscriber)',
      'GET /wp/v2/posts?status=private (subscriber)',
      'GET /wp/v2/posts?status=publish,draft (subscriber)',
      'GET /wp/v2/pages?status=draft',
      'GET /wp/v2/media?status=private',
      'GET /wp/v2/media?status=trash',
      'GET /wp/v2/blocks?status=draft',
    ],
  },
  {
    reason: 'the contract is that of WordPress 6.9, which takes these',
    cases: ['GET /wp/v2/media?media_type=', 'GET /wp/v2/global-styles/%2B138 (admin)'],
  },
  {
    reason: 'no row and no learned route: with unlistedRoutes: learn a plugin may have been added since',
    cases: [
      'GET /wp/v2/posts/-1',
      'GET /wp/v2/posts/x',
      'GET /wp/v2/posts/4x',
      'GET /wp/v2/posts/4.0',
      'GET /wp/v2/posts/4%20',
      'GET /wp/v2/posts/4/nope',
      'GET /wp/v2/nope',
      'GET /wp/v2/posts/nope/x',
      'GET /wp/v2/posts/4;x=1',
      'GET /wp/v2/posts/4%3Fa=1',
      'GET /wp/v2/posts/caf%C3%A9',
      'GET /oembed/1.0/nope',
      'GET /wp/v3/posts',
      'GET /nope/v1',
      'GET /nope',
      'GET /wp',
      'GET /wp/v2x/posts',
      'POST /wp/v2/nope',
      'PUT /wp/v2/nope',
      'DELETE /wp/v2/nope',
      'GET /wp/v2/categories/x',
    ],
  },
  {
    reason:
      'checks that no announced schema shows: whether an address can be read, and a default outside its own enum',
    cases: [
      'GET /wp-block-editor/v1/url-details?url=nope',
      'GET /wp-block-editor/v1/url-details?url=nope (admin)',
      'GET /wp/v2/block-renderer/core/archives',
      'GET /wp/v2/block-renderer/core/archives (admin)',
    ],
  },
]
