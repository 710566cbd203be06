import type { Difference } from './compare-values.ts'

/** A kind of difference that is meant, with its reason and how often it occurs: a change of either must be looked at. */
export type ExpectedDifference = {
  readonly reason: string
  readonly count: number
  covers(difference: Difference): boolean
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

/** Routes that WordPress announces and the contract's table does not list, by what they are for. */
export const unlistedRoutes: readonly { readonly reason: string; readonly patterns: readonly string[] }[] = [
  {
    reason:
      "the contract's table ends with the navigation collection; the routes that follow it are not shown",
    patterns: [
      '/site/v2/navigation/(?P<id>[\\d]+)',
      '/site/v2/navigation/(?P<parent>[\\d]+)/revisions',
      '/site/v2/navigation/(?P<parent>[\\d]+)/revisions/(?P<id>[\\d]+)',
      '/site/v2/navigation/(?P<id>[\\d]+)/autosaves',
      '/site/v2/navigation/(?P<parent>[\\d]+)/autosaves/(?P<id>[\\d]+)',
      '/site/v2/font-families',
      '/site/v2/font-families/(?P<id>[\\d]+)',
      '/site/v2/font-families/(?P<font_family_id>[\\d]+)/font-faces',
      '/site/v2/font-families/(?P<font_family_id>[\\d]+)/font-faces/(?P<id>[\\d]+)',
      '/site/v2/types',
      '/site/v2/types/(?P<type>[\\w-]+)',
      '/site/v2/statuses',
      '/site/v2/statuses/(?P<status>[\\w-]+)',
      '/site/v2/taxonomies',
      '/site/v2/taxonomies/(?P<taxonomy>[\\w-]+)',
      '/site/v2/categories',
      '/site/v2/categories/(?P<id>[\\d]+)',
      '/site/v2/tags',
      '/site/v2/tags/(?P<id>[\\d]+)',
      '/site/v2/menus',
      '/site/v2/menus/(?P<id>[\\d]+)',
      '/site/v2/site_pattern_category',
      '/site/v2/site_pattern_category/(?P<id>[\\d]+)',
      '/site/v2/users',
      '/site/v2/users/(?P<id>[\\d]+)',
      '/site/v2/users/me',
      '/site/v2/users/(?P<user_id>(?:[\\d]+|me))/application-passwords',
      '/site/v2/users/(?P<user_id>(?:[\\d]+|me))/application-passwords/introspect',
      '/site/v2/users/(?P<user_id>(?:[\\d]+|me))/application-passwords/(?P<uuid>[\\w\\-]+)',
      '/site/v2/comments',
      '/site/v2/comments/(?P<id>[\\d]+)',
      '/site/v2/search',
      '/site/v2/block-renderer/(?P<name>[a-z0-9-]+/[a-z0-9-]+)',
      '/site/v2/block-types',
      '/site/v2/block-types/(?P<namespace>[a-zA-Z0-9_-]+)',
      '/site/v2/block-types/(?P<namespace>[a-zA-Z0-9_-]+)/(?P<name>[a-zA-Z0-9_-]+)',
      '/site/v2/settings',
      '/site/v2/themes',
      '/site/v2/themes/(?P<stylesheet>[^\\/:<>\\*\\?"\\|]+(?:\\/[^\\/:<>\\*\\?"\\|]+)?)',
      '/site/v2/plugins',
      '/site/v2/plugins/(?P<plugin>[^.\\/]+(?:\\/[^.\\/]+)?)',
      '/site/v2/sidebars',
      '/site/v2/sidebars/(?P<id>[\\w-]+)',
      '/site/v2/widget-types',
      '/site/v2/widget-types/(?P<id>[a-zA-Z0-9_-]+)',
      '/site/v2/widget-types/(?P<id>[a-zA-Z0-9_-]+)/encode',
      '/site/v2/widget-types/(?P<id>[a-zA-Z0-9_-]+)/render',
      '/site/v2/widgets',
      '/site/v2/widgets/(?P<id>[\\w\\-]+)',
      '/site/v2/block-directory/search',
      '/site/v2/pattern-directory/patterns',
      '/site/v2/block-patterns/patterns',
      '/site/v2/block-patterns/categories',
      '/site/v2/menu-locations',
      '/site/v2/menu-locations/(?P<location>[\\w-]+)',
      '/site/v2/font-collections',
      '/site/v2/font-collections/(?P<slug>[\\/\\w-]+)',
    ],
  },
  {
    reason: 'the contract names the namespace site-health/v1 and does not show its routes',
    patterns: [
      '/site-health/v1',
      '/site-health/v1/tests/background-updates',
      '/site-health/v1/tests/loopback-requests',
      '/site-health/v1/tests/https-status',
      '/site-health/v1/tests/dotorg-communication',
      '/site-health/v1/tests/authorization-header',
      '/site-health/v1/directory-sizes',
      '/site-health/v1/tests/page-cache',
    ],
  },
  {
    reason: 'the contract names the namespace block-editor/v1 and does not show its routes',
    patterns: [
      '/block-editor/v1',
      '/block-editor/v1/url-details',
      '/block-editor/v1/export',
      '/block-editor/v1/navigation-fallback',
    ],
  },
  {
    reason: 'the contract names the namespace abilities/v1 and does not show its routes',
    patterns: [
      '/abilities/v1',
      '/abilities/v1/categories',
      '/abilities/v1/categories/(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)',
      '/abilities/v1/abilities/(?P<name>[a-zA-Z0-9\\-\\/]+?)/run',
      '/abilities/v1/abilities',
      '/abilities/v1/abilities/(?P<name>[a-zA-Z0-9\\-\\/]+)',
    ],
  },
]

/** Differences between rows and routes that both have. */
export const expectedDifferences: readonly ExpectedDifference[] = [
  {
    reason: 'descriptions are the words of the gateway, not those of WordPress',
    count: 805,
    covers: ({ path, ours, theirs }) =>
      path.at(-1) === 'description' && path.length > 5 && typeof (ours ?? theirs) === 'string',
  },
  {
    reason: 'WordPress writes out that an argument is not required; in a row that goes without saying',
    count: 604,
    covers: ({ path, ours, theirs }) => path.at(-1) === 'required' && ours === undefined && theirs === false,
  },
  {
    reason: 'PHP has one empty array: a map without members is announced as a list',
    count: 15,
    covers: ({ path, ours, theirs }) =>
      ['args', 'properties'].includes(path.at(-1) ?? '') &&
      isEmptyList(theirs) &&
      typeof ours === 'object' &&
      ours !== null &&
      Object.keys(ours).length === 0,
  },
]
