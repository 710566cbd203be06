import { parseArgs } from 'node:util'
import { closestName } from '../config/fault.ts'
import { headersOfLines } from '../http/headers/header-lines.ts'

const commandNames = [
  'start',
  'check',
  'doctor',
  'init',
  'schema',
  'routes',
  'explain',
  'status',
  'advise',
  'purge',
  'warm',
] as const

export type CommandName = (typeof commandNames)[number]

export type CommandLine =
  | { readonly kind: 'help'; readonly command: CommandName | undefined }
  | { readonly kind: 'version' }
  | Command
  | { readonly kind: 'fault'; readonly message: string; readonly command: CommandName | undefined }

const isCommand = (word: string): word is CommandName => (commandNames as readonly string[]).includes(word)

const options = {
  // `multiple`, so that a second one is refused instead of replacing the first.
  config: { type: 'string', short: 'c', multiple: true },
  demo: { type: 'boolean' },
  header: { type: 'string', short: 'H', multiple: true },
  drift: { type: 'boolean' },
  upstreams: { type: 'boolean' },
  json: { type: 'boolean' },
  force: { type: 'boolean' },
  admin: { type: 'string', multiple: true },
  url: { type: 'string', multiple: true },
  tag: { type: 'string', multiple: true },
  body: { type: 'string', multiple: true },
  prefix: { type: 'string', multiple: true },
  all: { type: 'boolean' },
  service: { type: 'string', multiple: true },
  soft: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  warm: { type: 'string', multiple: true },
  wait: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const

type OptionName = keyof typeof options

const reading = ['start', 'check', 'doctor', 'routes', 'explain'] as const
const remote = ['status', 'advise', 'purge', 'warm'] as const

/** The commands that take an option; an option without a row is taken by all. */
const takenBy: Readonly<Partial<Record<OptionName, readonly CommandName[]>>> = {
  config: [...reading, ...remote],
  demo: reading,
  header: ['explain'],
  body: ['explain'],
  drift: ['routes'],
  upstreams: ['check', 'routes', 'explain'],
  json: ['check', 'doctor', 'routes', 'explain', ...remote],
  force: ['init'],
  admin: remote,
  url: ['purge'],
  tag: ['purge'],
  prefix: ['purge'],
  all: ['purge'],
  service: ['purge'],
  soft: ['purge'],
  'dry-run': ['purge'],
  warm: ['purge'],
  wait: ['warm'],
}

/** What an option expects after it; an option without a row takes no value. */
const expectedAfter: Readonly<Partial<Record<OptionName, string>>> = {
  config: 'a configuration file, e.g. -c trellis.yaml',
  header: "'Name: value', e.g. -H 'Accept: text/html'",
  body: 'a file with the body of the request, e.g. --body query.json',
  admin: 'the URL of the admin side, e.g. http://127.0.0.1:9090',
  url: 'a public URL or path, e.g. --url /wp-json/wp/v2/posts',
  tag: 'a tag, as `trellis explain` shows it',
  prefix: 'the beginning of public paths, e.g. --prefix /shop',
  service: 'the name of a service of the configuration',
  warm: 'a number from 0 to 1000',
}

type Operands = { readonly min: number; readonly max: number; readonly expected: string }

const none: Operands = { min: 0, max: 0, expected: 'takes options only: leave out other words' }
const fileByOption: Operands = { ...none, expected: 'takes options only: name a configuration with -c FILE' }

const operandsOf: Readonly<Record<CommandName, Operands>> = {
  start: {
    min: 0,
    max: 2,
    expected:
      'takes options only: name a configuration with -c FILE, or an OpenAPI document with --demo openapi FILE',
  },
  check: { min: 0, max: 1, expected: 'takes one FILE' },
  init: {
    min: 0,
    max: 3,
    expected:
      'takes wordpress or open and the URL of the upstream, openapi, a document and that URL, or companion, dashboards, systemd or compose and a folder',
  },
  doctor: fileByOption,
  schema: none,
  routes: fileByOption,
  explain: { min: 2, max: 2, expected: 'takes METHOD and URL, e.g. trellis explain GET /plants' },
  status: none,
  advise: none,
  purge: {
    min: 0,
    max: 0,
    expected: 'takes options only: name what to remove with --url, --tag or --prefix',
  },
  warm: { min: 1, max: 1_000, expected: 'takes 1 to 1000 URLs, e.g. trellis warm /plants' },
}

type Values = ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>['values']
type ParsedOptions =
  | { readonly values: Values; readonly positionals: readonly string[] }
  | { readonly fault: string }

const shownOption = (name: string): string => ({ config: '-c', header: '-H' })[name] ?? `--${name}`

const isOption = (name: string): name is OptionName => Object.hasOwn(options, name)

const longestShown = 60

/** A word of the command line as a message shows it. */
const shownWord = (word: string): string =>
  JSON.stringify(word.length > longestShown ? `${word.slice(0, longestShown)}…` : word)

const listText = (words: readonly string[]): string =>
  words.length < 2 ? `${words[0] ?? ''}` : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`

/** Settings that other programs take as an option. */
const elsewhere: Readonly<Record<string, string>> = {
  port: 'the port is listen.port of the configuration',
  host: 'the address is listen.host of the configuration',
  token: 'the token is admin.token of the configuration, or TRELLIS_ADMIN_TOKEN',
}

const unknownOption = (rawName: string, command: CommandName | undefined): string => {
  const names = (Object.keys(options) as OptionName[]).filter((name) =>
    command === undefined ? takenBy[name] === undefined : takenBy[name]?.includes(command) !== false,
  )
  const name = rawName.replace(/^-+/, '')
  const place = Object.hasOwn(elsewhere, name) ? elsewhere[name] : undefined
  if (place !== undefined) return `unknown option ${shownWord(rawName)}; ${place}`
  const near =
    name.length < 2 ? undefined : (closestName(name, names) ?? closestName(name, Object.keys(options)))
  const offered =
    near === undefined
      ? `; ${command ?? 'trellis without a command'} takes ${listText(names.map(shownOption))}`
      : ` (did you mean --${near}?)`
  return `unknown option ${shownWord(rawName)}${offered}`
}

type OptionToken = {
  readonly name: string
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

const valueFault = ({ rawName, value, inlineValue }: OptionToken, expected: string): string | undefined => {
  if (value === undefined) return `${rawName} expects ${expected}`
  if (value === '') return `${rawName} expects ${expected}, found an empty text`
  if (inlineValue !== true)
    return /^-./.test(value) ? `${rawName} expects ${expected}, found ${shownWord(value)}` : undefined
  if (rawName.startsWith('--')) return undefined
  // Of a short option, `=` would be a part of the value.
  if (value.startsWith('=')) return `write ${rawName} ${value.slice(1)} without "="`
  const long = rawName.slice(1) + value
  return isOption(long) ? `write --${long} with two dashes` : undefined
}

/** Node has its own texts for these faults, which do not say what to write. */
const optionFault = (token: OptionToken, command: CommandName | undefined): string | undefined => {
  const { name, rawName, value } = token
  if (!isOption(name)) return unknownOption(rawName, command)
  const expected = expectedAfter[name]
  if (expected === undefined)
    return value === undefined ? undefined : `${rawName} takes no value: leave out ${shownWord(`=${value}`)}`
  return valueFault(token, expected)
}

const parse = (argv: readonly string[]): ParsedOptions => {
  const settings = { args: [...argv], options, allowPositionals: true } as const
  const { tokens, positionals } = parseArgs({ ...settings, strict: false, tokens: true })
  const command = positionals.find(isCommand)
  for (const token of tokens) {
    const fault = token.kind === 'option' ? optionFault(token, command) : undefined
    if (fault !== undefined) return { fault }
  }
  return parseArgs({ ...settings, strict: true })
}

const fileFault = (command: CommandName, files: readonly string[]): string | undefined => {
  if (files.length > 0 && command === 'schema') return 'schema takes no -c: it is the same for every file'
  return files.length > 1
    ? `one configuration file is read, found ${files.length}: ${listText(files)}`
    : undefined
}

const demoFault = (command: CommandName, files: readonly string[]): string | undefined => {
  if (command === 'schema') return 'schema takes no --demo: it is the same for every file'
  return files.length > 0 ? '--demo has its own configuration; leave out the file' : undefined
}

const foreignOption = (command: CommandName, values: Values): string | undefined => {
  const foreign = (Object.keys(values) as OptionName[]).find(
    (name) => takenBy[name]?.includes(command) === false,
  )
  if (foreign === undefined) return undefined
  const takers = takenBy[foreign] ?? []
  const ending = takers.length < 2 ? ' only' : ''
  return `${shownOption(foreign)} is an option of ${listText(takers)}${ending}: leave it out`
}

/** The value of an option that is given at most once. */
const single = (values: Values, name: 'admin' | 'body' | 'service' | 'warm'): string | undefined =>
  values[name]?.[0]

const maxWarmed = 1_000

const adminFault = (values: Values): string | undefined => {
  for (const name of ['admin', 'service', 'warm'] as const)
    if ((values[name]?.length ?? 0) > 1) return `--${name} is given more than once: leave out all but one`
  const url = single(values, 'admin')
  if (url !== undefined && (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)))
    return `--admin expects ${expectedAfter.admin}, found ${shownWord(url)}`
  const warm = single(values, 'warm')
  return warm === undefined || (/^\d{1,4}$/.test(warm) && Number(warm) <= maxWarmed)
    ? undefined
    : `--warm expects ${expectedAfter.warm}, found ${shownWord(warm)}`
}

const purgeOptions = (values: Values) => ({
  urls: values.url ?? [],
  tags: values.tag ?? [],
  prefixes: values.prefix ?? [],
  all: values.all === true,
  service: single(values, 'service'),
  soft: values.soft === true,
  dryRun: values['dry-run'] === true,
  /** How many of the most used targets are fetched again. */
  warm: Number(single(values, 'warm') ?? 0),
})

export type PurgeOptions = ReturnType<typeof purgeOptions>

const isPublicTarget = (url: string): boolean =>
  // Without the first slash, `plants` would be a path that no route has.
  /^(?:\/|https?:\/\/)/i.test(url) && URL.canParse(url, 'http://localhost')

const targetsFault = (what: string, urls: readonly string[]): string | undefined => {
  const wrong = urls.find((url) => !isPublicTarget(url))
  return wrong === undefined
    ? undefined
    : `${what} expects a path such as /plants, or a URL, found ${shownWord(wrong)}`
}

const purgeFault = ({ urls, tags, prefixes, all, dryRun, warm }: PurgeOptions): string | undefined => {
  const selectors = urls.length + tags.length + prefixes.length
  if (all && selectors > 0) return '--all includes everything else; leave out the others'
  if (dryRun && warm > 0) return '--dry-run removes nothing, so there is nothing to --warm'
  if (!all && selectors === 0) return 'purge expects --url, --tag, --prefix or --all'
  const wrong = prefixes.find((prefix) => !prefix.startsWith('/'))
  return wrong === undefined
    ? targetsFault('--url', urls)
    : `--prefix expects ${expectedAfter.prefix}, found ${shownWord(wrong)}`
}

const explainFault = ([method = '', url = '']: readonly string[]): string | undefined => {
  if (!/^[!#$%&'*+.^`|~\w-]+$/.test(method))
    return `explain expects a method, e.g. GET, found ${shownWord(method)}; the order is trellis explain METHOD URL`
  return targetsFault('explain', [url])
}

const isDemoDocument = ([kind, file = '']: readonly string[]): boolean => kind === 'openapi' && file !== ''

const commandFault = (
  command: CommandName,
  operands: readonly string[],
  values: Values,
): string | undefined => {
  const { min, max, expected } = operandsOf[command]
  const refusal = (): string => {
    const words = operands.length === 0 ? '' : `, found ${operands.slice(0, 3).map(shownWord).join(', ')}`
    return `${command} ${expected}${words}`
  }
  if (operands.length < min || operands.length > max) return refusal()
  const files = [...(values.config ?? []), ...(command === 'check' ? operands : [])]
  if (command === 'start' && operands.length > 0 && (values.demo !== true || !isDemoDocument(operands)))
    return refusal()
  return (
    fileFault(command, files) ??
    (values.demo === true ? demoFault(command, files) : undefined) ??
    foreignOption(command, values) ??
    (values.drift === true && values.upstreams === true
      ? '--drift includes --upstreams; leave out --upstreams'
      : undefined) ??
    adminFault(values) ??
    (command === 'purge' ? purgeFault(purgeOptions(values)) : undefined) ??
    (command === 'explain' ? explainFault(operands) : undefined) ??
    (command === 'warm' ? targetsFault('warm', operands) : undefined)
  )
}

const commandOf = (
  command: CommandName,
  operands: readonly string[],
  values: Values,
  headers: Readonly<Record<string, string>>,
) => ({
  kind: 'command' as const,
  command,
  /** `-` is standard input. */
  file: values.config?.[0] ?? (command === 'check' ? operands[0] : undefined),
  /** The configuration of the package, with its embedded upstreams. */
  demo: values.demo === true,
  /** `start --demo openapi FILE`: the demo is this document, answered by its own examples. */
  demoDocument: command === 'start' ? operands[1] : undefined,
  operands,
  headers,
  /** `explain`: the file with the body of the request. */
  bodyFile: single(values, 'body'),
  /** `routes`: compare with the upstream instead. */
  drift: values.drift === true,
  /** `check`, `routes` and `explain`: send requests to the upstreams, too. */
  upstreams: values.upstreams === true,
  json: values.json === true,
  /** `init`: replace the file. */
  force: values.force === true,
  /** Origin of the admin side; undefined: that of the configuration. */
  admin: single(values, 'admin'),
  /** `warm`: until the URLs are fetched. */
  wait: values.wait === true,
  purge: purgeOptions(values),
})

export type Command = ReturnType<typeof commandOf>

const readCommand = (command: CommandName, operands: readonly string[], values: Values): CommandLine => {
  const message = commandFault(command, operands, values)
  if (message !== undefined) return { kind: 'fault', command, message }
  const headers = headersOfLines(values.header ?? [])
  if (headers === undefined) {
    const words = (values.header ?? []).map(shownWord).join(', ')
    return { kind: 'fault', command, message: `-H expects ${expectedAfter.header}, found ${words}` }
  }
  return commandOf(command, operands, values, headers)
}

const theCommands = `the commands are ${listText(commandNames)}`

/** Parses the arguments of the process, without the program's name. */
export const readCommandLine = (argv: readonly string[]): CommandLine => {
  const parsedOptions = parse(argv)
  if ('fault' in parsedOptions)
    return { kind: 'fault', command: argv.find(isCommand), message: parsedOptions.fault }
  const { values, positionals } = parsedOptions
  const isHelp = positionals[0] === 'help'
  const [word, ...operands] = isHelp ? positionals.slice(1) : positionals
  if (values.version === true || word === 'version') return { kind: 'version' }
  if (word === undefined) {
    if (values.help === true || isHelp) return { kind: 'help', command: undefined }
    return { kind: 'fault', command: undefined, message: `a command is missing; ${theCommands}` }
  }
  if (!isCommand(word)) {
    const near = closestName(word, commandNames)
    const hint = near === undefined ? `; ${theCommands}` : ` (did you mean ${near}?)`
    return { kind: 'fault', command: undefined, message: `unknown command ${shownWord(word)}${hint}` }
  }
  return values.help === true || isHelp
    ? { kind: 'help', command: word }
    : readCommand(word, operands, values)
}
