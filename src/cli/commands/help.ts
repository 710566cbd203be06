import { exitCodes } from '../cli-ports.ts'
import type { CommandName } from '../command-line.ts'
import { textTable } from '../texts.ts'

type Help = { readonly usage: string; readonly summary: string; readonly details: readonly string[] }

const configOption =
  '  -c, --config FILE   configuration, - for standard input; default: TRELLIS_CONFIG, else ./trellis.yaml'
const demoOption = '      --demo          the configuration of the demo, with two embedded upstreams'
const helpOption = '  -h, --help          show this help'
const jsonOption = '      --json          print JSON'
const adminOptions = [
  '      --admin URL     admin side of the gateway; default: that of the configuration, else http://127.0.0.1:9090',
  '  -c, --config FILE   configuration with the URL and token of the admin side; default: TRELLIS_CONFIG, else ./trellis.yaml',
]
const tokenHint =
  'The token is `admin.token` of the configuration; with --admin alone, it is TRELLIS_ADMIN_TOKEN.'

const helpTexts: Readonly<Record<CommandName, Help>> = {
  start: {
    usage: 'trellis start [-c FILE | --demo]\n       trellis start --demo openapi FILE',
    summary: 'run the gateway',
    details: [
      'It serves when it prints "Trellis listens on"; with Redis, /readyz is 200 some seconds later.',
      'After SIGTERM or SIGINT, /readyz is 503, requests in flight are finished,',
      'and the process ends. A second signal ends it immediately.',
      '`trellis start --demo openapi pets.yaml` answers with the examples of an OpenAPI document.',
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
      'basePath, a front page that redirects to itself, or a home URL that bypasses the gateway. These also exit with 1.',
      '',
      configOption,
      demoOption,
      '      --upstreams     check the upstreams too',
      jsonOption,
      helpOption,
    ],
  },
  doctor: {
    usage: 'trellis doctor [--json] [-c FILE]',
    summary: 'look at the whole set-up, and say what to do',
    details: [
      'Node, memory, workers, ports, certificates, every server of every service, Redis, and the warnings of `trellis check`.',
      'A line for each, the faults first; the exit code is 1 if there are any. It sends a few GETs to each upstream.',
      '',
      configOption,
      demoOption,
      jsonOption,
      helpOption,
    ],
  },
  init: {
    usage:
      'trellis init [wordpress | open | openapi FILE] [URL] [--force]\n       trellis init {companion | dashboards | systemd | compose} DIR [--force]',
    summary: 'write a commented configuration to ./trellis.yaml, or files of the package to a folder',
    details: [
      '`trellis init wordpress https://blog.example` is for a WordPress: its REST API is cached, its pages pass through.',
      '`trellis init openapi pets.yaml` is for a service with an OpenAPI document: its operations are listed, with suggested rules.',
      'Without a URL, the upstream is the first of `servers`.',
      '`trellis init open http://127.0.0.1:3000` is for any other HTTP service.',
      'The URL is that of the service itself. Check the file with `trellis check`.',
      '',
      'companion: the plugin that tells Trellis of changes in WordPress; dashboards: of Grafana, with rules of Prometheus;',
      'systemd: a unit for this installation; compose: a WordPress behind Trellis, with Prometheus and Grafana, to try it.',
      '',
      '      --force         replace files',
      helpOption,
    ],
  },
  schema: {
    usage: 'trellis schema',
    summary: 'print the JSON Schema of the configuration',
    details: ['For editors: trellis schema > gateway.schema.json', '', helpOption],
  },
  routes: {
    usage: 'trellis routes [--upstreams | --drift] [-c FILE]',
    summary: 'print the route table: method, path, service, caching, batch',
    details: [
      'CACHED is the ttl of the rule, or - for a route that is not cached; BATCHABLE says whether a batch may contain it.',
      'With --upstreams, it adds the routes that the index of each site upstream announces (of plugins).',
      'With --drift, it prints how these indexes differ from the contract; the exit code is 1 if they do.',
      '',
      configOption,
      demoOption,
      '      --upstreams     add the routes that upstreams announce beyond the contract',
      '      --drift         compare with the upstreams instead',
      jsonOption,
      helpOption,
    ],
  },
  status: {
    usage: 'trellis status [--json] [--admin URL]',
    summary: 'show the state of a running gateway',
    details: [
      'Shows readiness, requests, cache and upstreams. The exit code is 1 if the gateway is not ready.',
      tokenHint,
      '',
      ...adminOptions,
      jsonOption,
      helpOption,
    ],
  },
  advise: {
    usage: 'trellis advise [--json] [--admin URL]',
    summary: 'show what costs hits, the worst first, and what to do about it',
    details: [
      'Reads what a running gateway has counted since its start.',
      tokenHint,
      '',
      ...adminOptions,
      jsonOption,
      helpOption,
    ],
  },
  purge: {
    usage: 'trellis purge {--url URL | --tag TAG | --prefix PATH}... | --all [options]',
    summary: 'remove stored responses of a running gateway',
    details: [
      'Removes the responses of the URLs, with one of the tags, below the paths, or all. Options may be repeated.',
      "Example: trellis purge --url '/wp-json/wp/v2/posts?per_page=5' --prefix /shop --dry-run",
      tokenHint,
      '',
      '      --url URL       public URL or path',
      '      --tag TAG       tag, as `trellis explain` shows it or as the upstream sent it',
      '      --prefix PATH   beginning of public paths',
      '      --all           everything',
      '      --service NAME  only of this service',
      '      --soft          mark as stale: still served while a new response is fetched, if the rule allows it',
      '      --dry-run       only count',
      '      --warm N        fetch the N most used of the removed responses again, in the background',
      ...adminOptions,
      jsonOption,
      helpOption,
    ],
  },
  warm: {
    usage: 'trellis warm URL... [--wait] [--json] [--admin URL]',
    summary: 'make a running gateway fetch URLs into its cache',
    details: [
      'The gateway fetches them in the background, without a credential, at the pace of `cache.warm`.',
      'With --wait, it prints the URLs that are not stored then, with the reasons, and exits with 1 if there are any.',
      tokenHint,
      '',
      '      --wait          until all have been fetched',
      ...adminOptions,
      jsonOption,
      helpOption,
    ],
  },
  explain: {
    usage: "trellis explain [--upstreams] [-c FILE] METHOD URL [-H 'Name: value']... [--body FILE]",
    summary: 'explain how a request would be handled, without sending it',
    details: [
      'Shows the route, the canonical form, the cache key, the tags and the rule, why the response is cached or not,',
      'and what a write may invalidate. Without --body the request has no body.',
      "Example: trellis explain GET '/wp-json/wp/v2/posts?per_page=5' -H 'Cookie: theme=dark'",
      '',
      configOption,
      demoOption,
      '      --upstreams     include the routes that upstreams announce beyond the contract',
      '  -H, --header FIELD  a request header, as in curl; repeatable',
      '      --body FILE     its body, JSON unless a Content-Type says otherwise; of a GraphQL request the operation decides',
      jsonOption,
      helpOption,
    ],
  },
}

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
