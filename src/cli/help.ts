import type { CommandName } from './command-line.ts'
import { exitCodes } from './exit-codes.ts'
import { textTable } from './text-table.ts'

type Help = { readonly usage: string; readonly summary: string; readonly details: readonly string[] }

const configOption =
  '  -c, --config FILE   configuration; otherwise TRELLIS_CONFIG, config/gateway.yaml, or the defaults'
const helpOption = '  -h, --help          this text'

const helpTexts: Readonly<Record<CommandName, Help>> = {
  start: {
    usage: 'trellis start [-c FILE]',
    summary: 'run the gateway',
    details: [
      'Runs until SIGTERM or SIGINT: then answers "not ready", finishes what is in flight, and exits.',
      'A second signal stops at once.',
      '',
      configOption,
      helpOption,
    ],
  },
  check: {
    usage: 'trellis check [--upstreams] [-c FILE]',
    summary: 'check a configuration: every fault at once, with its place',
    details: [
      'Prints FILE:LINE:COLUMN KEY: MESSAGE for each fault.',
      'With --upstreams it also asks the upstream of each site service, a few GETs, and prints what does not fit:',
      'a wrong basePath, a front page that redirects to itself, a home that leads past the gateway. The exit code is 1',
      'when something does not.',
      '',
      configOption,
      '  --upstreams         ask the upstreams, too',
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
      'With --upstreams it asks the upstream of each site service for its index, once, and adds the routes that are learned',
      'from it. With --drift it asks the upstream of each site service for its index, once, and prints how that differs',
      'from the contract; the exit code is 1 when it does.',
      '',
      configOption,
      '  --upstreams         add the routes that upstreams announce beside the contract',
      '  --drift             compare with the upstream instead',
      helpOption,
    ],
  },
  explain: {
    usage: "trellis explain [--upstreams] [-c FILE] METHOD URL [-H 'Name: value']...",
    summary: 'tell what would happen to a request, without sending it',
    details: [
      'Shows the row, the canonical form, the cache key, the tags, the rule, why it is cached or not,',
      'and what a write may invalidate. The request is taken for one without content.',
      '',
      configOption,
      '  --upstreams         ask the upstreams for the routes that they announce beside the contract',
      '  -H, --header FIELD  a request field, as in curl; may be given several times',
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
    '  -v, --version       the version',
    '',
    'Exit codes:',
    textTable(codes),
  ].join('\n')
}
