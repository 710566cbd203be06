import { parseArgs } from 'node:util'
import { closestName } from '../config/closest-name.ts'
import { exitCodes } from './exit-codes.ts'
import { textTable } from './texts.ts'

const commandNames = ['start', 'check', 'schema', 'routes', 'explain'] as const

type CommandName = (typeof commandNames)[number]

export type CommandLine =
  | { readonly kind: 'help'; readonly command: CommandName | undefined }
  | { readonly kind: 'version' }
  | {
      readonly kind: 'command'
      readonly command: CommandName
      /** `-` is standard input. */
      readonly file: string | undefined
      /** The configuration of the package, with its embedded upstreams. */
      readonly demo: boolean
      readonly operands: readonly string[]
      readonly fields: Readonly<Record<string, string>>
      /** `routes`: compare with the upstream instead. */
      readonly drift: boolean
      /** `check`, `routes` and `explain`: send requests to the upstreams, too. */
      readonly upstreams: boolean
    }
  | { readonly kind: 'fault'; readonly message: string; readonly command: CommandName | undefined }

const isCommand = (word: string): word is CommandName => (commandNames as readonly string[]).includes(word)

const options = {
  // `multiple`, so that a second one is refused instead of replacing the first.
  config: { type: 'string', short: 'c', multiple: true },
  demo: { type: 'boolean' },
  header: { type: 'string', short: 'H', multiple: true },
  drift: { type: 'boolean' },
  upstreams: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const

/** Least and greatest number of operands. */
const operandCounts: Readonly<Record<CommandName, readonly [number, 0 | 1 | 2]>> = {
  start: [0, 0],
  check: [0, 1],
  schema: [0, 0],
  routes: [0, 0],
  explain: [2, 2],
}

const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([^\0\r\n]{0,8192}?)[ \t]*$/

/** Field lines of one name are combined (RFC 9110 §5.3, RFC 9113 §8.2.3 for Cookie). */
const joined = (name: string, before: string | undefined, value: string): string =>
  before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`

/** Fields of lines such as `Name: value`; undefined when a line is malformed (RFC 9110 §5.6.2 token). */
const fieldsOf = (lines: readonly string[]): Record<string, string> | undefined => {
  const fields = new Map<string, string>()
  for (const line of lines) {
    const [, name, value] = fieldLine.exec(line) ?? []
    if (name === undefined || value === undefined) return undefined
    const key = name.toLowerCase()
    fields.set(key, joined(key, fields.get(key), value))
  }
  return Object.fromEntries(fields)
}

type Parsed =
  | { readonly values: Values; readonly positionals: readonly string[] }
  | { readonly fault: string }
type Values = {
  config?: string[]
  demo?: boolean
  header?: string[]
  drift?: boolean
  upstreams?: boolean
  help?: boolean
  version?: boolean
}

const parse = (argv: readonly string[]): Parsed => {
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
  return files.length > 0 ? '--demo has a configuration of its own; leave out the file' : undefined
}

const upstreamsFault = (command: CommandName, { upstreams, drift }: Values): string | undefined => {
  if (upstreams !== true) return undefined
  if (command === 'start' || command === 'schema')
    return '--upstreams is an option of check, routes and explain'
  return drift === true ? '--drift includes --upstreams; leave out --upstreams' : undefined
}

const readCommand = (command: CommandName, operands: readonly string[], values: Values): CommandLine => {
  const [least, most] = operandCounts[command]
  if (operands.length < least || operands.length > most) {
    const expected = { 0: 'takes no operands', 1: 'takes one FILE', 2: 'takes METHOD and URL' }[most]
    return { kind: 'fault', command, message: `${command} ${expected}` }
  }
  if (values.header !== undefined && command !== 'explain') {
    return { kind: 'fault', command, message: '-H is an option of explain only' }
  }
  if (values.drift === true && command !== 'routes') {
    return { kind: 'fault', command, message: '--drift is an option of routes only' }
  }
  const wrongUpstreams = upstreamsFault(command, values)
  if (wrongUpstreams !== undefined) return { kind: 'fault', command, message: wrongUpstreams }
  const files = [...(values.config ?? []), ...(command === 'check' ? operands : [])]
  const wrongFile =
    fileFault(command, files) ?? (values.demo === true ? demoFault(command, files) : undefined)
  if (wrongFile !== undefined) return { kind: 'fault', command, message: wrongFile }
  const fields = fieldsOf(values.header ?? [])
  if (fields === undefined) return { kind: 'fault', command, message: "-H expects 'Name: value'" }
  return {
    kind: 'command',
    command,
    file: files[0],
    demo: values.demo === true,
    operands,
    fields,
    drift: values.drift === true,
    upstreams: values.upstreams === true,
  }
}

/** Parses the arguments of the process, without the program's name. */
export const readCommandLine = (argv: readonly string[]): CommandLine => {
  const parsed = parse(argv)
  if ('fault' in parsed) return { kind: 'fault', command: undefined, message: parsed.fault }
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

type Help = { readonly usage: string; readonly summary: string; readonly details: readonly string[] }

const configOption =
  '  -c, --config FILE   configuration, - for standard input; default: TRELLIS_CONFIG, else ./trellis.yaml'
const demoOption = '      --demo          the configuration of the demo, with two embedded upstreams'
const helpOption = '  -h, --help          show this help'

const helpTexts: Readonly<Record<CommandName, Help>> = {
  start: {
    usage: 'trellis start [-c FILE | --demo]',
    summary: 'run the gateway',
    details: [
      'Runs until SIGTERM or SIGINT. Then it reports "not ready", finishes the requests in flight, and exits.',
      'A second signal stops at once.',
      '',
      configOption,
      demoOption,
      helpOption,
    ],
  },
  check: {
    usage: 'trellis check [--upstreams] [FILE]',
    summary: 'check a configuration and list all faults',
    details: [
      'Prints FILE:LINE:COLUMN KEY: MESSAGE for each fault, and exits with 1 if there are any.',
      'With --upstreams, it also sends a few GETs to the upstream of each site service, and reports problems such as a wrong',
      'basePath, a front page that redirects to itself, or a home URL that bypasses the gateway. The exit code is then 1.',
      '',
      configOption,
      demoOption,
      '  --upstreams         check the upstreams too',
      helpOption,
    ],
  },
  schema: {
    usage: 'trellis schema',
    summary: 'print the JSON Schema of the configuration',
    details: [helpOption],
  },
  routes: {
    usage: 'trellis routes [--upstreams | --drift] [-c FILE]',
    summary: 'print the route table: method, path, service, caching, batch',
    details: [
      'With --upstreams, it reads the index of each site upstream once, and adds the routes learned from it.',
      'With --drift, it prints how these indexes differ from the contract; the exit code is 1 if they do.',
      '',
      configOption,
      demoOption,
      '  --upstreams         add the routes that upstreams announce beyond the contract',
      '  --drift             compare with the upstreams instead',
      helpOption,
    ],
  },
  explain: {
    usage: "trellis explain [--upstreams] [-c FILE] METHOD URL [-H 'Name: value']...",
    summary: 'explain how a request would be handled, without sending it',
    details: [
      'Shows the route, the canonical form, the cache key, the tags and the rule, why the response is cached or not,',
      'and what a write may invalidate. The request has no body.',
      '',
      configOption,
      demoOption,
      '  --upstreams         include the routes that upstreams announce beyond the contract',
      '  -H, --header FIELD  a request header, as in curl; repeatable',
      helpOption,
    ],
  },
}

/** The text of `trellis --help`, or of `trellis COMMAND --help`. */
export const helpText = (command: CommandName | undefined): string => {
  if (command !== undefined) {
    const { usage, summary, details } = helpTexts[command]
    return [`Usage: ${usage}`, '', `${summary[0]?.toUpperCase()}${summary.slice(1)}.`, ...details, ''].join(
      '\n',
    )
  }
  const commands = Object.entries(helpTexts).map(([name, { summary }]) => [`  ${name}`, summary])
  const codes = Object.values(exitCodes).map(({ code, meaning }) => [`  ${code}`, meaning])
  return [
    'Usage: trellis COMMAND [options]',
    '',
    'Commands:',
    textTable(commands),
    'Options:',
    configOption,
    helpOption,
    '  -v, --version       show the version',
    '',
    'Exit codes:',
    textTable(codes),
  ].join('\n')
}
