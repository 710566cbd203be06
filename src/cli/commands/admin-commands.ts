import type { BuildChanges, WarmResponse } from '../../admin/operator.ts'
import type { StatusReport } from '../../admin/status-report.ts'
import { countText } from '../../http/count-text.ts'
import { parsedJson } from '../../http/json-text.ts'
import type { AdminAddress } from '../admin-address.ts'
import type { ExitReason, TextOutput } from '../cli-ports.ts'
import type { PurgeOptions } from '../options.ts'
import { jsonText, printable, textTable } from '../texts.ts'

export type AdminCommand = {
  readonly stdout: TextOutput
  readonly stderr: TextOutput
  readonly address: AdminAddress
  readonly json: boolean
}

export type AdminResponse =
  | { readonly kind: 'answered'; readonly content: unknown }
  /** `content`: the admin side refused, and says why. */
  | { readonly kind: 'failed'; readonly message: string; readonly content?: unknown }

const failed = (message: string, content?: unknown): AdminResponse => ({ kind: 'failed', message, content })

/** Longer than the admin side waits for fetches. */
const timeoutMs = 60_000

/** Why no response came: the system's error code such as ECONNREFUSED, or what fetch says, such as `bad port`. */
const causeOf = (error: unknown): string => {
  const { cause } = error as { readonly cause?: { readonly code?: unknown; readonly message?: unknown } }
  for (const text of [cause?.code, cause?.message]) if (typeof text === 'string') return text
  return error instanceof Error ? error.name : 'no cause'
}

const unreachableText = (url: string, error: unknown): string => {
  const cause = causeOf(error)
  switch (cause) {
    case 'bad port':
      return `fetch refuses the port of ${url} (${cause}): the Fetch standard blocks it; give admin.port another one`
    case 'unexpected redirect':
      return `${url} redirects (${cause}), so it is not the admin side of a gateway: name that with --admin URL`
    case 'TimeoutError':
      return `the gateway at ${url} has not answered within ${timeoutMs / 1000} s: see whether it is overloaded, and ask again`
    default:
      return `no gateway answers at ${url} (${cause}): start it, or name its admin side with --admin URL`
  }
}

const refusalText = (status: number, content: unknown, { url, token }: AdminAddress): string => {
  const { detail } = (content ?? {}) as { readonly detail?: unknown }
  if (typeof detail !== 'string')
    return `${url} is not the admin side of a gateway (status ${status}): name that with --admin URL`
  if (status !== 401) return detail
  return token === ''
    ? 'the admin side requires a token: name the configuration with -c, or set TRELLIS_ADMIN_TOKEN'
    : `the admin side at ${url} has another token: name its configuration with -c, or set TRELLIS_ADMIN_TOKEN`
}

/** GET without a body, POST with one. */
export const ask = async (address: AdminAddress, path: string, body?: object): Promise<AdminResponse> => {
  const { url, token } = address
  try {
    const response = await fetch(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'application/json',
        ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const content = parsedJson(await response.text())
    if (!response.ok) return failed(refusalText(response.status, content, address), content)
    return content === undefined
      ? failed(
          `${url} is not the admin side of a gateway (its answer is not JSON): name that with --admin URL`,
        )
      : { kind: 'answered', content }
  } catch (error) {
    return failed(unreachableText(url, error))
  }
}

/** Sends one request, and prints its answer with `show` or as JSON. */
const run = async <Content>(
  { address, json, stdout, stderr }: AdminCommand,
  [path, body]: readonly [path: string, body?: object],
  show: (content: Content) => string,
  exit: (content: Content) => ExitReason = () => 'ok',
): Promise<ExitReason> => {
  const response = await ask(address, path, body)
  if (response.kind === 'failed') {
    stderr.write(printable(`trellis: ${response.message}\n`))
    return 'adminFailed'
  }
  const content = response.content as Content
  stdout.write(json ? jsonText(content) : printable(show(content)))
  return exit(content)
}

type PurgeResponse = { readonly entries: number; readonly warming?: number }

export const purge = (command: AdminCommand, options: PurgeOptions): Promise<ExitReason> => {
  const { url: urls, tag: tags, prefix: prefixes, all, service, soft = false, dryRun = false } = options
  const mode = soft ? 'soft' : 'hard'
  const body = { all, urls, tags, prefixes, service, mode, dryRun, warm: options.warm ?? 0 }
  const effect = dryRun ? 'would be removed' : soft ? 'marked stale' : 'removed'
  return run<PurgeResponse>(command, ['/cache/purge', body], ({ entries, warming = 0 }) => {
    const again = warming === 0 ? '' : `, ${warming} fetched again in the background`
    return `${countText(entries, 'stored response')} ${effect}${again}\n`
  })
}

const refusedLines = ({ refused }: Pick<WarmResponse, 'refused'>): readonly string[] =>
  refused.map(({ url, detail }) => `${url}: ${detail}\n`)

/** As many as are fetched well within the time that one request may wait. */
const warmedAtOnce = 20
const maxShown = 50

type Waited = Required<WarmResponse>

/** Asks in parts: a thousand URLs take longer than a request may. */
const warmAndWait = async (command: AdminCommand, urls: readonly string[]): Promise<ExitReason> => {
  const { address, json, stdout, stderr } = command
  let [warming, stored] = [0, 0]
  let refused: Waited['refused'] = []
  let notStored: Waited['notStored'] = []
  for (let at = 0; at < urls.length; at += warmedAtOnce) {
    const part = { urls: urls.slice(at, at + warmedAtOnce), wait: true }
    const response = await ask(address, '/cache/warm', part)
    if (response.kind === 'failed') {
      stderr.write(printable(`trellis: ${response.message}\n`))
      return 'adminFailed'
    }
    const content = response.content as Waited
    warming += content.warming
    stored += content.stored
    refused = [...refused, ...content.refused]
    notStored = [...notStored, ...content.notStored]
  }
  const lines = [...refusedLines({ refused }), ...refusedLines({ refused: notStored })]
  const more = lines.length - maxShown
  stdout.write(
    json
      ? jsonText({ warming, refused, stored, notStored })
      : printable(
          [
            `${stored} of ${countText(urls.length, 'URL')} stored\n`,
            ...lines.slice(0, maxShown),
            ...(more > 0 ? [`and ${more} more; --json prints all\n`] : []),
          ].join(''),
        ),
  )
  return lines.length === 0 ? 'ok' : 'notWarmed'
}

export const warm = (command: AdminCommand, urls: readonly string[], wait: boolean): Promise<ExitReason> =>
  wait
    ? warmAndWait(command, urls)
    : run<WarmResponse>(
        command,
        ['/cache/warm', { urls }],
        ({ warming, refused }) =>
          [`${countText(warming, 'URL')} fetched in the background\n`, ...refusedLines({ refused })].join(''),
        ({ refused }) => (refused.length === 0 ? 'ok' : 'adminFailed'),
      )

/** Without changes where the build follows none. */
type BegunBuild = Partial<BuildChanges> & { readonly build: string }

const changedText = ({ build, reads = 0, changed = [], torn, everything }: BegunBuild): string => {
  const verdict = everything
    ? 'build every page: what earlier builds have read is not known'
    : `${changed.length} of ${countText(reads, 'URL')} changed since the build before`
  const tornLine = torn ? [['torn', 'a write fell into the build before'] as const] : []
  return textTable([
    ['build', build],
    ['changed', verdict],
    ...tornLine,
    ...changed.map((url) => ['', url] as const),
  ])
}

export const changed = (command: AdminCommand, since: string | undefined): Promise<ExitReason> =>
  run<BegunBuild>(command, ['/builds', since === undefined ? {} : { since }], changedText)

const mebibytes = (bytes: number): string => (bytes / 1_048_576).toFixed(1)

const share = (part: number, whole: number): string =>
  whole === 0 ? '-' : `${((100 * part) / whole).toFixed(1)} %`

/** Outcomes for which a stored response is served. */
const served: ReadonlySet<string> = new Set(['hit', 'stale', 'revalidated', 'collapsed'])

const duration = (seconds: number): string => {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`
}

type ReportedTarget = StatusReport['upstreams'][number]['targets'][number]

const targetState = ({ isKnown, up, leftOut }: ReportedTarget): string => {
  if (!isKnown) return 'unknown, not contacted yet'
  if (up) return 'healthy'
  return leftOut ? 'failing, gets no requests' : 'failing, still used'
}

const statusText = ({ readiness, build, ...report }: StatusReport): string => {
  const { requests, cache } = report
  const hits = requests.byCache.filter(({ cache: outcome }) => served.has(outcome))
  const failures = requests.byStatus.filter(({ status_class }) => status_class === '5xx')
  const sum = (counts: readonly { readonly count: number }[]): number =>
    counts.reduce((all, { count }) => all + count, 0)
  const running = duration(Date.now() / 1000 - report.startedAt)
  const state = readiness.ready ? 'ready' : `not ready: ${readiness.reasons.join(', ')}`
  const lines: (readonly [string, string])[] = [
    ['gateway', `${state}; version ${build.version}, running for ${running}`],
    [
      'requests',
      `${requests.total}, ${share(sum(hits), requests.total)} from the cache, ${share(sum(failures), requests.total)} failed (5xx), ${requests.inFlight} in flight`,
    ],
    [
      'cache',
      `${countText(cache.entries, 'response')}, ${mebibytes(cache.bytes)} of ${mebibytes(cache.maxBytes)} MiB`,
    ],
    ...report.upstreams.flatMap(({ service, breaker, waiting, targets }) => [
      [
        `upstream ${service}`,
        `breaker ${breaker}${waiting === 0 ? '' : `, ${countText(waiting, 'request')} waiting`}`,
      ] as const,
      ...targets.map((target) => ['', `${target.target}: ${targetState(target)}`] as const),
    ]),
    ...readiness.degraded.map(
      ({ reason, service, text }) =>
        ['degraded', `${reason}${service === undefined ? '' : ` (${service})`}: ${text}`] as const,
    ),
    ...report.notices.map(({ subject, text }) => ['warning', `${subject}: ${text}`] as const),
  ]
  return textTable(lines)
}

export const status = (command: AdminCommand): Promise<ExitReason> =>
  run<StatusReport>(command, ['/status'], statusText, ({ readiness }) =>
    readiness.ready ? 'ok' : 'notReady',
  )

type Advised = Pick<StatusReport, 'advice' | 'descriptions' | 'requests'>

const adviceText = ({ advice, descriptions, requests }: Advised): string => {
  if (requests.total === 0) return 'No request has come yet.\n'
  const complete = descriptions.filter(({ causes }) => causes.length === 0)
  const good = complete.map(({ service, text }) => `${service}: ${text}.\n`)
  if (advice.length === 0)
    return `Nothing that settings could change costs hits, in ${countText(requests.total, 'request')} since the start.\n${good.join('')}`
  const lines = advice.map(({ service, route, count, reads, unit, share: lost, text, yaml }) => {
    const of = lost === undefined ? `${count} times` : `${count} of ${reads} ${unit} (${share(count, reads)})`
    const settings = yaml === undefined ? '' : `\n${yaml.replaceAll(/^/gm, '    ')}\n`
    return `${service} ${printable(route)}: ${of}\n  ${text}.\n${settings}`
  })
  return [...lines, ...good].join('\n')
}

export const advise = (command: AdminCommand): Promise<ExitReason> =>
  run<StatusReport>(
    { ...command, json: false },
    ['/status'],
    command.json ? ({ advice }) => jsonText(advice) : adviceText,
    () => 'ok',
  )
