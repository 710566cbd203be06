import { writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { CliPorts } from '../cli-ports.ts'
import type { ExitReason } from '../exit-codes.ts'

/** What `trellis init` writes, or why it writes nothing. */
type Initial =
  | { readonly kind: 'file'; readonly text: string; readonly next: readonly string[] }
  | { readonly kind: 'fault'; readonly message: string }

const fault = (message: string): Initial => ({ kind: 'fault', message })

type Upstream = {
  readonly origin: string
  /** Path of the URL without a slash at its end; '' for none. */
  readonly path: string
  /** The URL names this machine or an address, not the name by which clients know the site. */
  readonly isInternal: boolean
}

const localName = /^(?:localhost|.*\.(?:localhost|local|internal)|[^.]+)$/

/** A path that needs no other spelling in `basePath`. */
const plainPath = /^(?:\/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*\/?$/

/** An http(s) URL of an upstream; undefined when the text is none. */
const readUpstream = (text: string): Upstream | undefined => {
  if (!URL.canParse(text)) return undefined
  const { protocol, origin, hostname, pathname, username, password, search, hash } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:') return undefined
  if (!plainPath.test(pathname)) return undefined
  if (username !== '' || password !== '' || search !== '' || hash !== '') return undefined
  const bare = hostname.replace(/^\[|\]$/g, '')
  return {
    origin,
    path: pathname.replace(/\/+$/, ''),
    isInternal: isIP(bare) !== 0 || localName.test(hostname),
  }
}

/** A value in double quotes, in which `${` would be a reference to the environment. */
const quoted = (text: string): string => JSON.stringify(text.replaceAll('${', '$${'))

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: references as the file spells them */
const commonLines = (publicUrl: string | undefined): string[] => [
  '# Configuration of Trellis. Check it with `trellis check`, then run `trellis start`.',
  '# Every setting with its default: docs/configuration.md in the package, or `trellis schema`.',
  '# "${NAME:-default}" reads an environment variable; secrets can be file:/run/secrets/name.',
  '',
  'listen: # clients connect here',
  '  host: "${TRELLIS_HOST:-127.0.0.1}" # 0.0.0.0 = every address of this machine',
  '  port: "${TRELLIS_PORT:-8080}"',
  '',
  'admin: # metrics, health, status page, purge; do not expose it to clients',
  '  host: "${TRELLIS_ADMIN_HOST:-127.0.0.1}"',
  '  port: "${TRELLIS_ADMIN_PORT:-9090}"',
  '  token: "${TRELLIS_ADMIN_TOKEN:-}" # set it where other machines reach this port; empty = writes from this machine only',
  '',
  ...(publicUrl === undefined
    ? ['# publicUrl: https://www.example.org # URL that clients use; without it, made from listen']
    : [`publicUrl: ${quoted(publicUrl)} # URL that clients use; links in responses begin with it`]),
  'trustedProxies: [] # proxies in front whose X-Forwarded-For is believed, e.g. [10.0.0.0/8]',
  '',
  'cache:',
  '  maxBytes: 256MiB # memory for stored responses',
  '',
]
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: references as the file spells them */

const openLines = ({ origin, path }: Upstream): string[] => [
  ...commonLines(undefined),
  'services:',
  '  api:',
  '    contract: open # any HTTP service; requests pass unchanged',
  '    mount: / # path on the gateway',
  '    upstream:',
  `      targets: [${quoted(origin)}] # one or several servers`,
  `      basePath: ${quoted(path === '' ? '/' : path)} # path on the upstream that stands for the mount`,
  '      # health: { path: /healthz } # checks each target every 5s',
  '    cache:',
  '      profile: rfc-shared-cache # stores what the Cache-Control of the upstream allows; safe = only what rules name',
  '      rules: [] # for responses without Cache-Control, e.g. { match: "GET /books/**", ttl: 60s }',
]

/** A site known by its name gets that name as Host; a server known by its address gets the one of the target. */
const wordpressLines = (upstream: Upstream): string[] => {
  const { origin, path, isInternal } = upstream
  const rest = quoted(`${path}/wp-json`)
  const host = isInternal
    ? 'host: target # Host that WordPress gets; preserve = that of publicUrl, once clients use it'
    : 'host: preserve # WordPress gets the Host of publicUrl; with another one it redirects'
  return [
    ...commonLines(isInternal ? undefined : origin),
    'limits: # as WordPress has them',
    '  bodyBytes: 8MiB # post_max_size of PHP',
    '  jsonDepth: 512',
    '  uploadBytes: 128MiB # upload_max_filesize of PHP',
    '',
    'services:',
    '  wordpress: # the REST API: checked, cached, invalidated by writes',
    '    contract: site',
    '    names: same # clients use the names of WordPress (wp/v2)',
    `    mount: ${rest} # path of the REST API; /index.php/wp-json without pretty permalinks`,
    '    upstream:',
    `      targets: &targets [${quoted(origin)}]`,
    `      basePath: ${rest}`,
    `      ${host}`,
    '      maxConcurrent: 16 # at most the number of PHP workers',
    '    cache:',
    '      rules:',
    '        # Writes through Trellis are visible at once; ttl limits the delay of changes that bypass it (WP-CLI, cron).',
    '        - { match: GET /wp/v2/**, ttl: 60s, staleWhileRevalidate: 30s, staleIfError: 1h, negativeTtl: 5s }',
    '',
    '  pages: # themes, wp-admin, wp-login, uploads: passed through, not stored',
    '    contract: open',
    '    mount: /',
    '    upstream:',
    '      targets: *targets',
    `      ${host}`,
    '      maxConcurrent: 16',
    '      timeouts: { headers: 60s, total: 5m } # updates and imports take long',
  ]
}

const kinds = { wordpress: wordpressLines, open: openLines } as const

const defaultUrls = { wordpress: 'http://127.0.0.1:8000', open: 'http://127.0.0.1:3000' } as const

const isKind = (word: string): word is keyof typeof kinds => Object.hasOwn(kinds, word)

/** The configuration for `trellis init [wordpress | open] [URL]`. */
const initialConfig = (operands: readonly string[]): Initial => {
  const [kind = 'open', url] = operands
  if (!isKind(kind)) return fault(`init ${JSON.stringify(kind)}: expected wordpress or open`)
  const upstream = readUpstream(url ?? defaultUrls[kind])
  if (upstream === undefined)
    return fault(`init ${kind} expects the http or https URL of the upstream, e.g. ${defaultUrls[kind]}`)
  return {
    kind: 'file',
    text: `${kinds[kind](upstream).join('\n')}\n`,
    next: [
      ...(url === undefined ? [`set upstream.targets, now ${defaultUrls[kind]}`] : []),
      kind === 'wordpress' ? 'trellis check --upstreams' : 'trellis check',
      'trellis start',
    ],
  }
}

/** Writes the file; one that is there already is replaced only with `force`. */
export const writeInitialConfig = async (
  { initFile, stdout, stderr }: Pick<CliPorts, 'initFile' | 'stdout' | 'stderr'>,
  operands: readonly string[],
  force: boolean,
): Promise<ExitReason> => {
  const initial = initialConfig(operands)
  if (initial.kind === 'fault') {
    stderr.write(`trellis: ${initial.message}\nTry: trellis init --help\n`)
    return 'usage'
  }
  try {
    // With `wx` a file that is there already stays as it is.
    await writeFile(initFile, initial.text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    stderr.write(
      code === 'EEXIST'
        ? `trellis: ${initFile} exists already; --force replaces it\n`
        : `trellis: ${initFile} cannot be written (${code})\n`,
    )
    return 'fileExists'
  }
  stdout.write(`${initFile} written. Next:\n${initial.next.map((step) => `  ${step}\n`).join('')}`)
  return 'ok'
}
