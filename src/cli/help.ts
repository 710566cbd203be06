import type { CommandName } from './command-line.ts'
import { exitCodes } from './exit-codes.ts'
import { textTable } from './text-table.ts'

type Help = { readonly usage: string; readonly summary: string; readonly details: readonly string[] }

const configOption =
  '  -c, --config FILE   configuration; default: TRELLIS_CONFIG, else config/gateway.yaml of the package'
const helpOption = '  -h, --help          show this help'

const helpTexts: Readonly<Record<CommandName, Help>> = {
  start: {
    usage: 'trellis start [-c FILE]',
    summary: 'run the gateway',
    details: [
      'Runs until SIGTERM or SIGINT. Then it reports "not ready", finishes the requests in flight, and exits.',
      'A second signal stops at once.',
      '',
      configOption,
      helpOption,
    ],
  },
  check: {
    usage: 'trellis check [--upstreams] [-c FILE]',
    summary: 'check a configuration and list all faults',
    details: [
      'Prints FILE:LINE:COLUMN KEY: MESSAGE for each fault, and exits with 1 if there are any.',
      'With --upstreams, it also sends a few GETs to the upstream of each site service, and reports problems such as a wrong',
      'basePath, a front page that redirects to itself, or a home URL that bypasses the gateway. The exit code is then 1.',
      '',
      configOption,
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
