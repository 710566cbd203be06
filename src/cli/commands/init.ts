import { writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkConfig } from '../../gateway/load-config.ts'
import type { CliPorts, ExitReason } from '../cli-ports.ts'
import {
  anyResponseHealth,
  commonLines,
  documentServer,
  documentServiceLines,
  quoted,
  readDocument,
} from '../document-config.ts'
import { printable } from '../texts.ts'
import { readUpstream, type UpstreamUrl } from '../upstream-url.ts'

/** What `trellis init` writes, or why it writes nothing. */
type Initial =
  | {
      readonly kind: 'file'
      readonly text: string
      readonly next: readonly string[]
      /** What the upstream said of itself, or why it was not asked. */
      readonly hints?: readonly string[]
    }
  | { readonly kind: 'document-faults'; readonly messages: readonly string[] }

type InitPorts = Pick<
  CliPorts,
  | 'initFile'
  | 'packageFolder'
  | 'env'
  | 'stdout'
  | 'stderr'
  | 'siteFacts'
  | 'upstreamIssues'
  | 'upstreamFreshness'
>

const cacheLines: Readonly<Record<'by-upstream' | 'by-rule', readonly string[]>> = {
  'by-upstream': [
    '      profile: rfc-shared-cache # stores what the Cache-Control of the upstream allows; safe = only what rules name',
    '      rules: [] # for responses without Cache-Control, e.g. { match: "GET /books/**", ttl: 60s }',
  ],
  'by-rule': [
    '      profile: safe # requests with cookies or credentials bypass the cache, and responses that set cookies are not stored',
    '      rules: # the upstream sends no Cache-Control',
    '        # A write through Trellis drops what is stored; ttl limits the delay of changes that bypass it.',
    '        - { match: "GET /**", ttl: 10s } # name the paths that all clients see alike, and give them a longer ttl',
  ],
}

const openLines = ({ origin, path }: UpstreamUrl, caching: keyof typeof cacheLines): string[] => [
  ...commonLines(undefined),
  'services:',
  '  api:',
  '    contract: open # any HTTP service; requests pass unchanged',
  '    mount: / # path on the gateway',
  '    upstream:',
  `      targets: [${quoted(origin)}] # one or several servers`,
  `      basePath: ${quoted(path === '' ? '/' : path)} # path on the upstream that stands for the mount`,
  `      ${anyResponseHealth}`,
  '    cache:',
  ...cacheLines[caching],
]

const freshnessHints = {
  stated: 'It says for how long its responses are fresh: they are stored for that time.',
  none: 'It sends no Cache-Control: the rule GET /** stores what it answers, for 10 s.',
  forbidden: 'GET / sets a cookie or forbids to store it, so it is not stored; other paths may be.',
  unknown: undefined,
} as const

/** The configuration for `trellis init open [URL]`. */
const openInitial = async (
  upstream: UpstreamUrl,
  isAsked: boolean,
  next: readonly string[],
  ports: InitPorts,
): Promise<Initial> => {
  const text = textOf(openLines(upstream, 'by-upstream'))
  if (!isAsked) return { kind: 'file', text, next }
  const hints = await reachHints(text, ports)
  const result = await checkConfig(text, {})
  const freshness = result.kind === 'ok' ? await ports.upstreamFreshness(result.config) : 'unknown'
  const hint = freshnessHints[freshness]
  const isStored = freshness === 'stated' || freshness === 'none'
  return {
    kind: 'file',
    text: freshness === 'none' ? textOf(openLines(upstream, 'by-rule')) : text,
    next: isStored
      ? [...next, 'curl -I http://127.0.0.1:8080/ twice: Cache-Status of the second says hit']
      : next,
    hints: hint === undefined ? hints : [...hints, hint],
  }
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

/** A site known by its name gets that name as Host; a server known by its address gets the one of the target. */
const wordpressLines = (
  { origin, isInternal }: UpstreamUrl,
  root: string,
  graphqlPath: string | undefined,
): string[] => {
  const quotedRoot = quoted(root)
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
    `    mount: ${quotedRoot} # path of the REST API; /index.php/wp-json without pretty permalinks`,
    '    upstream:',
    `      targets: &targets [${quoted(origin)}]${isInternal ? '' : ' # once DNS leads to Trellis: the address of the web server'}`,
    `      basePath: ${quotedRoot}`,
    `      ${host}`,
    '      maxConcurrent: 16 # at most the number of PHP workers',
    '      health: { path: /wp/v2/types/post, interval: 10s, timeout: 5s } # asks WordPress, below basePath',
    '    cache:',
    '      rules:',
    '        # Writes through Trellis are visible immediately; ttl limits the delay of changes that bypass it (WP-CLI, cron).',
    '        - { match: GET /wp/v2/**, ttl: 60s, staleWhileRevalidate: 30s, staleIfError: 1h, negativeTtl: 5s }',
    '',
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

const defaultUrls = { wordpress: 'http://127.0.0.1:8000', open: 'http://127.0.0.1:3000' } as const

/** The path of a document as the configuration file names it. */
const pathFrom = (folder: string, file: string): string => {
  if (isAbsolute(file)) return file
  const path = relative(folder, resolve(file)).split(sep).join('/')
  return path.startsWith('.') ? path : `./${path}`
}

const textOf = (lines: readonly string[]): string => `${lines.join('\n')}\n`

/** Does the upstream answer? */
const reachHints = async (
  text: string,
  { initFile, upstreamIssues }: InitPorts,
): Promise<readonly string[]> => {
  const result = await checkConfig(text, {}, dirname(initFile))
  if (result.kind === 'faults') return []
  const issues = await upstreamIssues(result.config, 'all')
  const origins = result.config.services.flatMap(({ upstream }) => [upstream.targets].flat())
  return issues.length === 0 ? [`${origins.join(', ')} answers.`] : issues.map((issue) => issue.text)
}

/** The configuration for `trellis init openapi FILE [URL]`. */
const documentInitial = async (
  file: string,
  url: UpstreamUrl | undefined,
  ports: InitPorts,
): Promise<Initial> => {
  const { initFile } = ports
  const path = pathFrom(dirname(resolve(initFile)), file)
  const reading = await readDocument(path, dirname(initFile))
  if (reading.kind === 'faults') return { kind: 'document-faults', messages: reading.messages }
  const namedUpstream = url ?? documentServer(reading.document)
  // A server that is only a path is on the host that clients ask.
  const { server } = reading.document
  const assumed = server?.startsWith('/') === true ? readUpstream(defaultUrls.open + server) : undefined
  const upstream = namedUpstream ?? assumed ?? (readUpstream(defaultUrls.open) as UpstreamUrl)
  const lines = documentServiceLines(reading.document, path, upstream, 'suggested')
  const text = textOf([...commonLines(undefined), ...lines])
  const { title, contract } = reading.document
  const reads = contract.operations.filter(({ method }) => method === 'GET').length
  return {
    kind: 'file',
    text,
    hints: [
      `The document ${JSON.stringify(title)} has ${contract.operations.length} operations, GET: ${reads}.`,
      ...(await reachHints(text, ports)),
    ],
    next: [
      ...(namedUpstream === undefined ? [`set upstream.targets, now ${defaultUrls.open}`] : []),
      'trellis check --upstreams',
      'trellis start',
    ],
  }
}

/** The file for a site, with the path at which it announces its REST API. */
const advertisedSite = async (upstream: UpstreamUrl, siteFacts: CliPorts['siteFacts'] | undefined) => {
  const usual = `${upstream.path.replace(/(?:\/index\.php)?\/wp-json$/, '')}/wp-json`
  const lines = wordpressLines(upstream, usual, undefined)
  const result = await checkConfig(textOf(lines), {})
  if (siteFacts === undefined || result.kind === 'faults') return { lines, hints: [] }
  const { root, fault, hasCompanion, graphqlPath } = await siteFacts(result.config)
  if (root === undefined || readUpstream(upstream.origin + root) === undefined)
    return {
      lines,
      hints: [`${usual} is assumed. ${fault ?? 'The site does not say where its REST API is.'}`],
    }
  return {
    lines: wordpressLines(upstream, root, graphqlPath),
    hints: [
      `WordPress announces its REST API at ${root}.`,
      ...(graphqlPath === undefined ? [] : [`WPGraphQL answers at ${graphqlPath}.`]),
      hasCompanion
        ? 'The companion is installed: set changes.token of the service to its TRELLIS_TOKEN.'
        : 'The companion is not installed: with it, changes that bypass Trellis are visible at once (deploy/wordpress/README.md).',
    ],
  }
}

/** What `trellis init` is asked for; without a URL the file has a usual one. */
export type InitRequest =
  | { readonly kind: 'wordpress' | 'open'; readonly url: UpstreamUrl | undefined }
  | { readonly kind: 'openapi'; readonly document: string; readonly url: UpstreamUrl | undefined }

const initialConfig = async (request: InitRequest, ports: InitPorts): Promise<Initial> => {
  const { kind, url } = request
  if (kind === 'openapi') return documentInitial(request.document, url, ports)
  const upstream = url ?? (readUpstream(defaultUrls[kind]) as UpstreamUrl)
  const setTargets = url === undefined ? [`set upstream.targets, now ${defaultUrls[kind]}`] : []
  const next = [...setTargets, 'trellis check --upstreams', 'trellis start']
  if (kind === 'open') return openInitial(upstream, url !== undefined, next, ports)
  const { lines, hints } = await advertisedSite(upstream, url === undefined ? undefined : ports.siteFacts)
  return { kind: 'file', text: textOf(lines), next, hints }
}

/** The line by which editors check the file and complete its keys. */
const schemaLine = (folder: string, packageFolder: URL): string => {
  const schema = fileURLToPath(new URL('config/gateway.schema.json', packageFolder))
  const path = relative(folder, schema)
  return `# yaml-language-server: $schema=${path.startsWith('..') ? schema : `./${path.split(sep).join('/')}`}\n`
}

/** npm names itself to what `npx` runs: a package in a folder has no command of its own. */
const commandOf = ({ env }: InitPorts, step: string): string =>
  env['npm_execpath'] === undefined ? step : step.replace(/^trellis /, 'npx trellis ')

/** Writes the file; one that is there already is replaced only with `force`. */
export const writeInitialConfig = async (
  ports: InitPorts,
  request: InitRequest,
  force: boolean,
): Promise<ExitReason> => {
  const { initFile, packageFolder, stdout, stderr } = ports
  const initial = await initialConfig(request, ports)
  if (initial.kind === 'document-faults') {
    for (const message of initial.messages) stderr.write(printable(`${message}\n`))
    stderr.write('Mend the document, or name another one: trellis init openapi FILE\n')
    return 'configFaults'
  }
  try {
    // With `wx` a file that is there already stays as it is.
    const schema = schemaLine(resolve(dirname(initFile)), packageFolder)
    await writeFile(initFile, schema + initial.text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    stderr.write(
      code === 'EEXIST'
        ? `trellis: ${initFile} exists already; --force replaces it\n`
        : `trellis: ${initFile} cannot be written (${code})\n`,
    )
    return 'fileExists'
  }
  for (const hint of initial.hints ?? []) stdout.write(printable(`${hint}\n`))
  stdout.write(
    `${initFile} written. Next:\n${initial.next.map((step) => `  ${commandOf(ports, step)}\n`).join('')}`,
  )
  return 'ok'
}
