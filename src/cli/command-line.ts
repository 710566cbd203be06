import { parseArgs } from 'node:util'
import { closestName } from '../config/fault.ts'
import { fieldsOfLines } from '../http/message.ts'

const commandNames = [
  'start',
  'check',
  'doctor',
  'init',
  'schema',
  'routes',
  'explain',
  'status',
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
const remote = ['status', 'purge', 'warm'] as const

/** The commands that take an option; an option without a row is taken by all. */
const takenBy: Readonly<Partial<Record<OptionName, readonly CommandName[]>>> = {
  config: [...reading, ...remote],
  demo: reading,
  header: ['explain'],
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

type Operands = { readonly least: number; readonly most: number; readonly expected: string }

const none: Operands = { least: 0, most: 0, expected: 'takes no operands' }

const operandsOf: Readonly<Record<CommandName, Operands>> = {
  start: { least: 0, most: 2, expected: 'takes no operands, and with --demo: openapi and a document' },
  check: { least: 0, most: 1, expected: 'takes one FILE' },
  init: {
    least: 0,
    most: 3,
    expected:
      'takes wordpress or open and the URL of the upstream, openapi, a document and that URL, or companion, dashboards, systemd or compose and a folder',
  },
  doctor: none,
  schema: none,
  routes: none,
  explain: { least: 2, most: 2, expected: 'takes METHOD and URL' },
  status: none,
  purge: {
    least: 0,
    most: 0,
    expected: 'takes no operands: name what to remove with --url, --tag or --prefix',
  },
  warm: { least: 1, most: 1_000, expected: 'takes 1 to 1000 URLs' },
}

type Values = ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>['values']
type ParsedOptions =
  | { readonly values: Values; readonly positionals: readonly string[] }
  | { readonly fault: string }

const parse = (argv: readonly string[]): ParsedOptions => {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true })
  } catch (cause) {
    return { fault: cause instanceof Error ? (cause.message.split('. ')[0] ?? cause.message) : String(cause) }
  }
}

const fileFault = (command: CommandName, files: readonly string[]): string | undefined => {
  if (files.length > 0 && command === 'schema') return 'schema takes no -c: it is the same for every file'
  if (files.length > 1) return 'more than one configuration file is given'
  return files[0] === '' ? '-c expects a file name, but it is empty' : undefined
}

const demoFault = (command: CommandName, files: readonly string[]): string | undefined => {
  if (command === 'schema') return 'schema takes no --demo: it is the same for every file'
  return files.length > 0 ? '--demo has its own configuration; leave out the file' : undefined
}

const listed = (words: readonly string[]): string =>
  words.length < 2 ? `${words[0]} only` : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`

const shownOption = (name: string): string => ({ config: '-c', header: '-H' })[name] ?? `--${name}`

const foreignOption = (command: CommandName, values: Values): string | undefined => {
  const foreign = (Object.keys(values) as OptionName[]).find(
    (name) => takenBy[name]?.includes(command) === false,
  )
  if (foreign === undefined) return undefined
  return `${shownOption(foreign)} is an option of ${listed(takenBy[foreign] ?? [])}`
}

/** The value of an option that is given at most once. */
const single = (values: Values, name: 'admin' | 'service' | 'warm'): string | undefined => values[name]?.[0]

const mostWarmed = 1_000

const adminFault = (values: Values): string | undefined => {
  for (const name of ['admin', 'service', 'warm'] as const)
    if ((values[name]?.length ?? 0) > 1) return `--${name} is given more than once`
  const url = single(values, 'admin')
  if (url !== undefined && (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)))
    return '--admin expects the URL of the admin side, e.g. http://127.0.0.1:9090'
  const warm = single(values, 'warm')
  return warm === undefined || (/^\d{1,4}$/.test(warm) && Number(warm) <= mostWarmed)
    ? undefined
    : `--warm expects a number from 0 to ${mostWarmed}`
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

const purgeFault = ({ urls, tags, prefixes, all, dryRun, warm }: PurgeOptions): string | undefined => {
  const selectors = urls.length + tags.length + prefixes.length
  if (all && selectors > 0) return '--all includes everything else; leave out the others'
  if (dryRun && warm > 0) return '--dry-run removes nothing, so there is nothing to --warm'
  return all || selectors > 0 ? undefined : 'purge expects --url, --tag, --prefix or --all'
}

const isDemoDocument = ([kind, file = '']: readonly string[]): boolean => kind === 'openapi' && file !== ''

const commandFault = (
  command: CommandName,
  operands: readonly string[],
  values: Values,
): string | undefined => {
  const { least, most, expected } = operandsOf[command]
  if (operands.length < least || operands.length > most) return `${command} ${expected}`
  const files = [...(values.config ?? []), ...(command === 'check' ? operands : [])]
  if (command === 'start' && operands.length > 0 && (values.demo !== true || !isDemoDocument(operands)))
    return `start ${expected}`
  return (
    fileFault(command, files) ??
    (values.demo === true ? demoFault(command, files) : undefined) ??
    foreignOption(command, values) ??
    (values.drift === true && values.upstreams === true
      ? '--drift includes --upstreams; leave out --upstreams'
      : undefined) ??
    adminFault(values) ??
    (command === 'purge' ? purgeFault(purgeOptions(values)) : undefined)
  )
}

const commandOf = (
  command: CommandName,
  operands: readonly string[],
  values: Values,
  fields: Readonly<Record<string, string>>,
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
  fields,
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
  const fields = fieldsOfLines(values.header ?? [])
  if (fields === undefined) return { kind: 'fault', command, message: "-H expects 'Name: value'" }
  return commandOf(command, operands, values, fields)
}

/** Adds the option that an unknown one seems to mean. */
const withOption = (message: string): string => {
  const [, name] = /^Unknown option '--([^']*)'/.exec(message) ?? []
  const near = name === undefined ? undefined : closestName(name, Object.keys(options))
  return near === undefined ? message : `${message} (did you mean --${near}?)`
}

/** Parses the arguments of the process, without the program's name. */
export const readCommandLine = (argv: readonly string[]): CommandLine => {
  const parsed = parse(argv)
  if ('fault' in parsed)
    return { kind: 'fault', command: argv.find(isCommand), message: withOption(parsed.fault) }
  const { values, positionals } = parsed
  const isHelp = positionals[0] === 'help'
  const [word, ...operands] = isHelp ? positionals.slice(1) : positionals
  if (values.version === true || word === 'version') return { kind: 'version' }
  if (word === undefined) {
    if (values.help === true || isHelp) return { kind: 'help', command: undefined }
    return { kind: 'fault', command: undefined, message: 'a command is missing' }
  }
  if (!isCommand(word)) {
    const near = closestName(word, commandNames)
    const hint = near === undefined ? '' : ` (did you mean ${near}?)`
    return { kind: 'fault', command: undefined, message: `unknown command ${JSON.stringify(word)}${hint}` }
  }
  return values.help === true || isHelp
    ? { kind: 'help', command: word }
    : readCommand(word, operands, values)
}
