import { type Command, InvalidArgumentError, Option } from 'commander'
import { headersOfLines } from '../http/headers/header-lines.ts'
import { readUpstream, type UpstreamUrl } from './upstream-url.ts'

/** `--json`: for scripts. */
export type JsonOption = { readonly json?: boolean }

type Parser<Value> = (value: string, previous: Value | undefined) => Value

/** A second one is refused: it would replace the first without a word. */
const once =
  <Value>(parse: (value: string) => Value): Parser<Value> =>
  (value, previous) => {
    if (previous !== undefined) throw new InvalidArgumentError('It is given twice: leave out one.')
    return parse(value)
  }

const each =
  <Value>(parse: (value: string) => Value): Parser<readonly Value[]> =>
  (value, previous = []) => [...previous, parse(value)]

/** A value that is empty, or looks like the next option, was forgotten. */
const textOf =
  (expected: string, isValid: (value: string) => boolean = () => true) =>
  (value: string): string => {
    const isForgotten = value === '' || /^-./.test(value)
    if (isForgotten || !isValid(value)) throw new InvalidArgumentError(`Expected ${expected}.`)
    return value
  }

const isPublicTarget = (url: string): boolean =>
  // Without the first slash, `plants` would be a path that no route has.
  /^(?:\/|https?:\/\/)/i.test(url) && URL.canParse(url, 'http://localhost')

const isAdminUrl = (url: string): boolean =>
  /^https?:\/\//i.test(url) && URL.canParse(url) && !/[?#@]/.test(url)

const target = textOf('a path such as /plants, or a URL', isPublicTarget)

export const targetArgument = (value: string): string => target(value)

export const targetsArgument = each(target)

/** Methods are case-sensitive (RFC 9110 §9.1) and in capitals; on the command line `get` means GET. */
export const methodArgument = (value: string): string =>
  textOf('a method such as GET; the order is METHOD URL', (word) => /^[!#$%&'*+.^`|~\w-]+$/.test(word))(
    value,
  ).toUpperCase()

const argumentText = textOf('a name')

/** Of a file or folder. */
export const nameArgument = (value: string): string => argumentText(value)

export const upstreamArgument = (value: string): UpstreamUrl => {
  const upstream = readUpstream(value)
  if (upstream !== undefined) return upstream
  const [named, usual] = [`https://${value}`, 'http://127.0.0.1:3000']
  const example = readUpstream(named) === undefined ? usual : named
  throw new InvalidArgumentError(
    `Expected the http or https URL of the upstream, without a credential, e.g. ${example}.`,
  )
}

const option = <Value>(flags: string, description: string, parse: Parser<Value>): Option =>
  new Option(flags, description).argParser(parse)

const flag = (flags: string, description: string): Option => new Option(flags, description)

const configFile = textOf(
  'a configuration file, e.g. -c trellis.yaml, without "="',
  (file) => !file.startsWith('='),
)

/** Shared options are made for each command: what conflicts with what differs. */
export const configOption = (): Option =>
  option(
    '-c, --config <file>',
    'configuration, - for standard input; default: TRELLIS_CONFIG, else ./trellis.yaml',
    once(configFile),
  )

/** The same for commands that ask a running gateway. */
export const adminConfigOption = (): Option =>
  option(
    '-c, --config <file>',
    'configuration with the URL and token of the admin side; default: TRELLIS_CONFIG, else ./trellis.yaml',
    once(configFile),
  )

export const waitOption = (): Option => flag('--wait', 'until all have been fetched')

export const sinceOption = (): Option =>
  option(
    '--since <build>',
    'the build that this one follows; default: none, everything is to be built',
    once(textOf('the id of a build, as trellis changed prints it', (id) => id !== '')),
  )

export const demoOption = (): Option =>
  flag('--demo', 'the configuration of the demo, with two demo services').conflicts('config')

export const jsonOption = (): Option => flag('--json', 'print JSON')

export const upstreamsOption = (description: string): Option => flag('--upstreams', description)

export const driftOption = (): Option =>
  flag('--drift', 'compare with the upstreams instead').conflicts('upstreams')

export const forceOption = (): Option => flag('--force', 'replace files')

export const adminOption = (): Option =>
  option(
    '--admin <url>',
    'admin side of the gateway; default: that of the configuration, else http://127.0.0.1:9090',
    once(textOf('the URL of the admin side, e.g. http://127.0.0.1:9090', isAdminUrl)),
  )

const headerLine = textOf(
  "'Name: value', e.g. -H 'Accept: text/html'",
  (line) => headersOfLines([line]) !== undefined,
)

export const headerOption = (): Option =>
  option('-H, --header <line>', 'a request header, as in curl; repeatable', each(headerLine))

export const bodyOption = (): Option =>
  option(
    '--body <file>',
    'body of the request, JSON unless a Content-Type says otherwise; of a GraphQL request the operation decides',
    once(textOf('a file with the body of the request, e.g. --body query.json')),
  )

const count = (value: string): number => {
  if (!/^\d{1,4}$/.test(value) || Number(value) > 1_000)
    throw new InvalidArgumentError('Expected a number from 0 to 1000.')
  return Number(value)
}

/** What `purge` removes, and how. */
export const purgeOptions = (): readonly Option[] => [
  option('--url <url>', 'public URL or path; repeatable', each(target)),
  option(
    '--tag <tag>',
    'tag, as `trellis explain` shows it or as the upstream sent it; repeatable',
    each(textOf('a tag')),
  ),
  option(
    '--prefix <path>',
    'beginning of public paths; repeatable',
    each(textOf('the beginning of public paths, e.g. /shop', (path) => path.startsWith('/'))),
  ),
  flag('--all', 'everything').conflicts(['url', 'tag', 'prefix']),
  option(
    '--service <name>',
    'only of this service',
    once(textOf('the name of a service of the configuration')),
  ),
  flag('--soft', 'mark as stale: still served while a new response is fetched, if the rule allows it'),
  flag('--dry-run', 'only count').conflicts('warm'),
  option(
    '--warm <number>',
    'fetch as many of the removed responses again, the most used first, in the background',
    once(count),
  ),
]

export type PurgeOptions = {
  readonly url?: readonly string[]
  readonly tag?: readonly string[]
  readonly prefix?: readonly string[]
  readonly all?: boolean
  readonly service?: string
  readonly soft?: boolean
  readonly dryRun?: boolean
  readonly warm?: number
}

const settingsElsewhere = {
  port: 'the port is listen.port of the configuration',
  host: 'the address is listen.host of the configuration',
  token: 'the token is admin.token of the configuration, or TRELLIS_ADMIN_TOKEN',
} as const

/** Refuses what other programs take as an option, and says which setting it is. The value may be a secret, and is not shown. */
export const refuseSettings = (command: Command): void => {
  for (const [name, place] of Object.entries(settingsElsewhere)) {
    command.addOption(new Option(`--${name} <value>`).hideHelp())
    command.on(`option:${name}`, () => command.error(`error: --${name} is no option: ${place}`))
  }
}
