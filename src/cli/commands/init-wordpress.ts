import type { SiteFacts } from '../../gateway/upstream-issues.ts'
import { commonLines, quoted } from '../document-config.ts'
import type { UpstreamUrl } from '../upstream-url.ts'

/** What the file says of a site that was asked, or would say of any. */
export type WrittenSite = Pick<SiteFacts, 'graphqlPath' | 'plugins' | 'home'> & {
  /** Path of the REST API. */
  readonly root: string
}

/** The folder of WordPress: '' at the root of its host. */
const folderOf = (root: string): string => root.replace(/(?:\/index\.php)?\/wp-json$/, '')

const limitLines = (root: string): string[] => {
  const path = (method: string, name: string): string => quoted(`${method} ${folderOf(root)}${name}`)
  const by = 'by: address'
  return [
    'rateLimits: # of each client address; behind a proxy, set trustedProxies first: otherwise all clients have its address',
    `  - { name: logins, service: pages, match: ${path('POST', '/wp-login.php')}, ${by}, max: 20, window: 1m }`,
    `  - { name: cron, service: pages, match: ${path('*', '/wp-cron.php')}, ${by}, max: 4, window: 1m } # each call may drop what is stored`,
    `  - { name: xmlrpc, service: pages, match: ${path('POST', '/xmlrpc.php')}, ${by}, max: 60, window: 1m }`,
    '',
  ]
}

const graphqlLines = (path: string | undefined, host: string): string[] =>
  path === undefined
    ? []
    : [
        '  graphql: # WPGraphQL: queries are stored, mutations and writes of the site drop them (docs/graphql.md)',
        '    contract: graphql',
        `    mount: ${quoted(path)}`,
        '    upstream:',
        '      targets: *targets',
        `      basePath: ${quoted(path)}`,
        `      ${host}`,
        '      maxConcurrent: 16',
        '    cache:',
        '      rules:',
        '        - { match: query *, ttl: 60s, staleWhileRevalidate: 30s, staleIfError: 1h }',
        '',
      ]

/** Suggestions stand as comments: whoever knows the site puts them in force. */
const cacheLines = (plugins: SiteFacts['plugins'] = []): string[] => {
  const cookies = plugins.flatMap(({ harmlessCookies = [] }) => harmlessCookies)
  const reads = plugins.flatMap(({ name, reads: paths = [] }) => paths.map((path) => ({ name, path })))
  const example = cookies.length === 0 ? 'theme' : cookies.join(', ')
  return [
    '    cache:',
    `      # harmlessCookies: [${example}] # cookies that change no response of this API; trellis advise names those that cost hits`,
    '      rules:',
    '        # Writes through Trellis are visible immediately; ttl limits the delay of changes that bypass it (WP-CLI, cron).',
    '        - { match: GET /wp/v2/**, ttl: 60s, staleWhileRevalidate: 30s, staleIfError: 1h, negativeTtl: 5s }',
    ...(reads.length === 0 ? [] : ['        # Of plugins; remove "# " to put a rule in force:']),
    ...reads.map(({ name, path }) => `        # - { match: ${quoted(`GET ${path}`)}, ttl: 60s } # ${name}`),
    '',
  ]
}

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: references as the file spells them */
const changesLines = [
  '    # changes: # with the companion, changes that bypass Trellis are visible at once, too (trellis init companion)',
  '    #   token: "${TRELLIS_TOKEN:-}" # as TRELLIS_TOKEN in wp-config.php; openssl rand -hex 32',
]
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: references as the file spells them */

/** A site gets the Host of its own address, where that is known; a server known by its address alone gets the one of the target. */
export const wordpressLines = (
  { origin, isInternal }: UpstreamUrl,
  { root, graphqlPath, plugins, home = origin }: WrittenSite,
): string[] => {
  const quotedRoot = quoted(root)
  // A site whose own address is another one redirects whoever comes with the Host of the server.
  const publicUrl = isInternal && home === origin ? undefined : home
  const host =
    publicUrl === undefined
      ? 'host: target # Host that WordPress gets; preserve = that of publicUrl, once clients use it'
      : 'host: preserve # WordPress gets the Host of publicUrl; with another one it redirects'
  return [
    ...commonLines(publicUrl, [
      '  verify: { rate: 1/s } # compares stored responses with what WordPress says now, and counts those that differ',
    ]),
    'limits: # as WordPress has them',
    '  bodyBytes: 8MiB # post_max_size of PHP',
    '  jsonDepth: 512',
    '  uploadBytes: 128MiB # upload_max_filesize of PHP',
    '',
    ...limitLines(root),
    'services:',
    '  wordpress: # the REST API: checked, cached, invalidated by writes',
    '    contract: site',
    '    names: same # clients use the names of WordPress (wp/v2)',
    `    mount: ${quotedRoot} # path of the REST API; /index.php/wp-json without pretty permalinks`,
    '    upstream:',
    `      targets: &targets [${quoted(origin)}]${isInternal ? '' : ' # once DNS leads to Trellis: the address of the web server'}`,
    `      basePath: ${quotedRoot}`,
    `      ${host}`,
    '      maxConcurrent: 16 # at most the number of PHP workers',
    '      health: { path: /wp/v2/types/post, interval: 10s, timeout: 5s } # asks WordPress, below basePath',
    ...changesLines,
    ...cacheLines(plugins),
    ...graphqlLines(graphqlPath, host),
    '  pages: # themes, wp-admin, wp-login, uploads: passed through, not stored',
    '    contract: open',
    '    mount: /',
    '    upstream:',
    '      targets: *targets',
    `      ${host}`,
    '      maxConcurrent: 16',
    `      health: { path: ${quoted(`${root}/wp/v2/types/post`)}, interval: 10s, timeout: 5s }`,
  ]
}

const maxNamed = 8

/** What the site said of itself. */
export const siteHints = ({
  root,
  hasCompanion,
  graphqlPath,
  plugins = [],
}: SiteFacts): readonly string[] => {
  const names = plugins.map(({ name }) => name)
  const more = names.length - maxNamed
  return [
    `WordPress announces its REST API at ${root}.`,
    ...(graphqlPath === undefined ? [] : [`WPGraphQL answers at ${graphqlPath}.`]),
    ...(names.length === 0
      ? []
      : [
          `Plugins in its index: ${names.slice(0, maxNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}.`,
        ]),
    hasCompanion
      ? 'The companion is installed: set changes.token of the service to its TRELLIS_TOKEN.'
      : 'The companion is not installed: with it, changes that bypass Trellis are visible at once (deploy/wordpress/README.md).',
  ]
}
