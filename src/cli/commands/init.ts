import { writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkConfig } from '../../gateway/load-config.ts'
import { countText } from '../../http/count-text.ts'
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
import { firstHit } from './first-hit.ts'
import { siteHints, wordpressLines } from './init-wordpress.ts'

/** What `trellis init` writes, or why it writes nothing. */
type Initial =
  | {
      readonly kind: 'file'
      readonly text: string
      readonly next: readonly string[]
      /** What the upstream said of itself, or why it was not asked. */
      readonly hints?: readonly string[]
      /** A path whose second read is a hit. */
      readonly tried?: string
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
  | 'startTrial'
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
    next,
    ...(isStored ? { tried: '/' } : {}),
    hints: hint === undefined ? hints : [...hints, hint],
  }
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
      `The document ${JSON.stringify(title)} describes ${countText(contract.operations.length, 'operation')}, ${reads} of them with GET.`,
      ...(await reachHints(text, ports)),
    ],
    next: [
      ...(namedUpstream === undefined ? [`set upstream.targets, now ${defaultUrls.open}`] : []),
      'choose what to cache: see the comments at the end of the file',
      'trellis check --upstreams',
      'trellis start',
    ],
  }
}

/** The file for a site, with what the site says of itself. */
const wordpressInitial = async (
  upstream: UpstreamUrl,
  isAsked: boolean,
  next: readonly string[],
  { siteFacts }: InitPorts,
): Promise<Initial> => {
  const usual = `${upstream.path.replace(/(?:\/index\.php)?\/wp-json$/, '')}/wp-json`
  const text = textOf(wordpressLines(upstream, { root: usual }))
  const result = await checkConfig(text, {})
  if (!isAsked || result.kind === 'faults') return { kind: 'file', text, next, hints: [] }
  const facts = await siteFacts(result.config)
  const { root, fault } = facts
  if (root === undefined || readUpstream(upstream.origin + root) === undefined) {
    const hint = `${usual} is assumed. ${fault ?? 'The site does not say where its REST API is.'}`
    return { kind: 'file', text, next, hints: [hint] }
  }
  return {
    kind: 'file',
    text: textOf(wordpressLines(upstream, { ...facts, root })),
    next,
    hints: siteHints({ ...facts, root }),
    tried: `${root}/wp/v2/posts`,
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
  return wordpressInitial(upstream, url !== undefined, next, ports)
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
  const { env, initFile, packageFolder, stdout, stderr } = ports
  const initial = await initialConfig(request, ports)
  if (initial.kind === 'document-faults') {
    for (const message of initial.messages) stderr.write(printable(`${message}\n`))
    stderr.write('Correct the document, or name another one: trellis init openapi FILE\n')
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
  const config =
    initial.tried === undefined ? undefined : await checkConfig(initial.text, env, dirname(initFile))
  if (initial.tried !== undefined && config?.kind === 'ok')
    stdout.write(printable(`${await firstHit(ports, config.config, initial.tried)}\n`))
  return 'ok'
}
