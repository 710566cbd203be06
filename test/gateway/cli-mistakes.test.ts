import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from '../support/command.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'

const token = 'token-of-the-admin-side'
let folder: string
let gateway: TestGateway
let redirecting: HttpServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-mistakes-'))
  gateway = await startTestGateway({
    admin: { port: 0, token },
    services: { api: { contract: 'open', mount: '/api', upstream: { targets: ['http://127.0.0.1:1'] } } },
  })
  redirecting = await startHttpServer((_request, response) => {
    response.writeHead(302, { Location: '/login' }).end()
  })
  await writeFile(join(folder, 'trellis.yaml'), 'listen: { port: 8080 }')
})
afterAll(async () => {
  await gateway.close()
  await redirecting.close()
  await rm(folder, { recursive: true })
})

/** Addresses that differ in each run have names in the tables. */
const named = (): readonly (readonly [name: string, value: string])[] => [
  ['ADMIN', gateway.adminAddress],
  ['PUBLIC', gateway.publicAddress],
  ['REDIRECTS', redirecting.origin],
  ['FOLDER', folder],
]

const run = async (line: string, env: Readonly<Record<string, string>> = {}) => {
  const filled = named().reduce((text, [name, value]) => text.replaceAll(name, value), line)
  const argv = [...filled.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '')
  const { end, stdout, stderr } = await runCommand(argv, { env, initFile: join(folder, 'init.yaml') })
  return { end, text: named().reduce((text, [name, value]) => text.replaceAll(value, name), stdout + stderr) }
}

test.each([
  ['chekc', "unknown command 'chekc'\n(Did you mean check?)", 'trellis --help'],
  ['run', "unknown command 'run'", 'trellis --help'],
  ['-x', "unknown option '-x'", 'trellis --help'],
  ['--port 8080', "unknown option '--port'", 'trellis --help'],
  [
    'start --port 8080',
    '--port is no option: the port is listen.port of the configuration',
    'trellis start --help',
  ],
  ['start -p 8080', "unknown option '-p'", 'trellis start --help'],
  [
    'start --host 0.0.0.0',
    '--host is no option: the address is listen.host of the configuration',
    'trellis start --help',
  ],
  [
    'start trellis.yaml',
    "name a configuration with -c FILE, or an OpenAPI document with --demo openapi FILE, instead of 'trellis.yaml'",
    'trellis start --help',
  ],
  ['start -c', "option '-c, --config <file>' argument missing", 'trellis start --help'],
  [
    'start --config=',
    `option '-c, --config <file>' argument '' is invalid. Expected a configuration file, e.g. -c trellis.yaml, without "=".`,
    'trellis start --help',
  ],
  [
    'start -c --demo',
    `option '-c, --config <file>' argument '--demo' is invalid. Expected a configuration file, e.g. -c trellis.yaml, without "=".`,
    'trellis start --help',
  ],
  ['start --upstreams', "unknown option '--upstreams'", 'trellis start --help'],
  [
    'start --demo -c x',
    "option '--demo' cannot be used with option '-c, --config <file>'",
    'trellis start --help',
  ],
  [
    'check -c=x.yaml',
    `option '-c, --config <file>' argument '=x.yaml' is invalid. Expected a configuration file, e.g. -c trellis.yaml, without "=".`,
    'trellis check --help',
  ],
  [
    'check -config x.yaml',
    "one configuration is checked: leave out -c or --demo, or 'x.yaml'",
    'trellis check --help',
  ],
  ['check --conf x.yaml', "unknown option '--conf'\n(Did you mean --config?)", 'trellis check --help'],
  [
    'check a.yaml b.yaml',
    "too many arguments for 'check'. Expected 1 argument but got 2.",
    'trellis check --help',
  ],
  [
    'check a.yaml -c b.yaml',
    "one configuration is checked: leave out -c or --demo, or 'a.yaml'",
    'trellis check --help',
  ],
  [
    'check -c a --config=b',
    "option '-c, --config <file>' argument 'b' is invalid. It is given twice: leave out one.",
    'trellis check --help',
  ],
  ['check --drift', "unknown option '--drift'", 'trellis check --help'],
  ['check --json=true', "unknown option '--json=true'", 'trellis check --help'],
  [
    'doctor trellis.yaml',
    "too many arguments for 'doctor'. Expected 0 arguments but got 1.",
    'trellis doctor --help',
  ],
  ['schema -c x', "unknown option '-c'", 'trellis schema --help'],
  [
    'routes --drift --upstreams',
    "option '--drift' cannot be used with option '--upstreams'",
    'trellis routes --help',
  ],
  ['routes --upstrems', "unknown option '--upstrems'\n(Did you mean --upstreams?)", 'trellis routes --help'],
  ['explain', "missing required argument 'method'", 'trellis explain --help'],
  ['explain GET', "missing required argument 'url'", 'trellis explain --help'],
  [
    'explain /plants GET',
    "'/plants' is invalid for argument 'method'. Expected a method such as GET; the order is METHOD URL.",
    'trellis explain --help',
  ],
  [
    'explain GET plants',
    "'plants' is invalid for argument 'url'. Expected a path such as /plants, or a URL.",
    'trellis explain --help',
  ],
  [
    'explain GET ftp://127.0.0.1/plants',
    "'ftp://127.0.0.1/plants' is invalid for argument 'url'. Expected a path such as /plants, or a URL.",
    'trellis explain --help',
  ],
  [
    "explain 'GE T' /plants",
    "'GE T' is invalid for argument 'method'. Expected a method such as GET; the order is METHOD URL.",
    'trellis explain --help',
  ],
  ['explain -X POST /plants', "unknown option '-X'", 'trellis explain --help'],
  ['explain GET /x -H', "option '-H, --header <line>' argument missing", 'trellis explain --help'],
  [
    'explain GET /x -H Accept',
    "option '-H, --header <line>' argument 'Accept' is invalid. Expected 'Name: value', e.g. -H 'Accept: text/html'.",
    'trellis explain --help',
  ],
  [
    'explain GET /x -H -c x',
    "option '-H, --header <line>' argument '-c' is invalid. Expected 'Name: value', e.g. -H 'Accept: text/html'.",
    'trellis explain --help',
  ],
  ['status now', "too many arguments for 'status'. Expected 0 arguments but got 1.", 'trellis status --help'],
  [
    'status --admin localhost',
    "option '--admin <url>' argument 'localhost' is invalid. Expected the URL of the admin side, e.g. http://127.0.0.1:9090.",
    'trellis status --help',
  ],
  [
    'status --admin ws://127.0.0.1:9090',
    "option '--admin <url>' argument 'ws://127.0.0.1:9090' is invalid. Expected the URL of the admin side, e.g. http://127.0.0.1:9090.",
    'trellis status --help',
  ],
  [
    'status --admin http://user:secret@127.0.0.1:9090',
    "option '--admin <url>' argument 'http://…@127.0.0.1:9090' is invalid. Expected the URL of the admin side, e.g. http://127.0.0.1:9090.",
    'trellis status --help',
  ],
  [
    'status --admin http://a --admin http://b',
    "option '--admin <url>' argument 'http://b' is invalid. It is given twice: leave out one.",
    'trellis status --help',
  ],
  [
    'status --token x',
    '--token is no option: the token is admin.token of the configuration, or TRELLIS_ADMIN_TOKEN',
    'trellis status --help',
  ],
  ['--token=secret status', "unknown option '--token'", 'trellis --help'],
  [
    'init wordpress https://user:secret@blog.example',
    "'https://…@blog.example' is invalid for argument 'url'. Expected the http or https URL of the upstream, without a credential, e.g. http://127.0.0.1:3000.",
    'trellis init wordpress --help',
  ],
  ['purge', 'name what to remove with --url, --tag, --prefix or --all', 'trellis purge --help'],
  ['purge /a', "too many arguments for 'purge'. Expected 0 arguments but got 1.", 'trellis purge --help'],
  ['purge --url', "option '--url <url>' argument missing", 'trellis purge --help'],
  ["purge --tag ''", "option '--tag <tag>' argument '' is invalid. Expected a tag.", 'trellis purge --help'],
  ['purge --all --tag a', "option '--all' cannot be used with option '--tag <tag>'", 'trellis purge --help'],
  [
    'purge --url api',
    "option '--url <url>' argument 'api' is invalid. Expected a path such as /plants, or a URL.",
    'trellis purge --help',
  ],
  [
    'purge --prefix shop',
    "option '--prefix <path>' argument 'shop' is invalid. Expected the beginning of public paths, e.g. /shop.",
    'trellis purge --help',
  ],
  [
    'purge --all --dry-run --warm 5',
    "option '--dry-run' cannot be used with option '--warm <number>'",
    'trellis purge --help',
  ],
  [
    'purge --all --warm x',
    "option '--warm <number>' argument 'x' is invalid. Expected a number from 0 to 1000.",
    'trellis purge --help',
  ],
  [
    'purge --all --warm 5000',
    "option '--warm <number>' argument '5000' is invalid. Expected a number from 0 to 1000.",
    'trellis purge --help',
  ],
  [
    'purge --all --service=a --service=b',
    "option '--service <name>' argument 'b' is invalid. It is given twice: leave out one.",
    'trellis purge --help',
  ],
  ['warm', "missing required argument 'url'", 'trellis warm --help'],
  ['warm --wiat /a', "unknown option '--wiat'\n(Did you mean --wait?)", 'trellis warm --help'],
  [
    'warm plants',
    "'plants' is invalid for argument 'url'. Expected a path such as /plants, or a URL.",
    'trellis warm --help',
  ],
  [
    'init wordpres',
    "'wordpres' is invalid for argument 'kind'. Allowed choices are wordpress, open, openapi, companion, dashboards, systemd, compose.",
    'trellis init --help',
  ],
  [
    'init http://127.0.0.1:3000',
    "'http://127.0.0.1:3000' is invalid for argument 'kind'. Allowed choices are wordpress, open, openapi, companion, dashboards, systemd, compose.",
    'trellis init --help',
  ],
  [
    'init wordpress blog.example',
    "'blog.example' is invalid for argument 'url'. Expected the http or https URL of the upstream, without a credential, e.g. https://blog.example.",
    'trellis init wordpress --help',
  ],
  [
    'init open http://a http://b',
    "too many arguments for 'open'. Expected 1 argument but got 2.",
    'trellis init open --help',
  ],
  ['init openapi', "missing required argument 'file'", 'trellis init openapi --help'],
  [
    'init openapi a b c',
    "too many arguments for 'openapi'. Expected 2 arguments but got 3.",
    'trellis init openapi --help',
  ],
  ['init systemd', "missing required argument 'folder'", 'trellis init systemd --help'],
  ['init compos x', "too many arguments for 'init'. Expected 1 argument but got 2.", 'trellis init --help'],
])('trellis %s ends with 2, says what is wrong, and where to read more', async (line, message, help) => {
  expect(await run(line)).toEqual({ end: 2, text: `trellis: ${message}\nTry: ${help}\n` })
})

test.each([
  ['', 2],
  ['help chek', 2],
  ['foo --help', 0],
])('trellis %s shows the help', async (line, end) => {
  const shown = await run(line)
  expect(shown.text).toMatch(/^Usage: trellis \[options\] \[command\]\n/)
  expect(shown.end).toBe(end)
})

test.each([
  [
    'check -c nowhere.yaml',
    [
      'nowhere.yaml:1:1 the file cannot be read, it does not exist (ENOENT)',
      '1 fault',
      'Name another file with -c FILE, or write ./trellis.yaml with trellis init',
    ],
  ],
  [
    'check -c FOLDER',
    [
      'FOLDER:1:1 the file cannot be read, it is a folder (EISDIR)',
      '1 fault',
      'Name another file with -c FILE, or write ./trellis.yaml with trellis init',
    ],
  ],
  [
    'check -c FOLDER/trellis.yaml/x',
    [
      'FOLDER/trellis.yaml/x:1:1 the file cannot be read, a part of its path is not a folder (ENOTDIR)',
      '1 fault',
      'Name another file with -c FILE, or write ./trellis.yaml with trellis init',
    ],
  ],
  [
    'status -c nowhere.yaml',
    [
      'nowhere.yaml:1:1 the file cannot be read, it does not exist (ENOENT)',
      '1 fault',
      'Name another file with -c FILE, or write ./trellis.yaml with trellis init',
    ],
  ],
  [
    'init openapi nowhere.yaml',
    [
      'nowhere.yaml: the file cannot be read, it does not exist (ENOENT)',
      'Correct the document, or name another one: trellis init openapi FILE',
    ],
  ],
])('trellis %s ends with 1, and says what to do about the file', async (line, lines) => {
  expect(await run(line)).toEqual({ end: 1, text: `${lines.join('\n')}\n` })
})

const tokens = { none: {}, wrong: { TRELLIS_ADMIN_TOKEN: 'other' }, right: { TRELLIS_ADMIN_TOKEN: token } }

test.each([
  [
    'status --admin http://127.0.0.1:1',
    'none',
    [
      'trellis: fetch refuses the port of http://127.0.0.1:1 (bad port): the Fetch standard blocks it; give admin.port another one',
    ],
  ],
  [
    'status --admin PUBLIC',
    'none',
    ['trellis: PUBLIC is not the admin side of a gateway (status 404): name that with --admin URL'],
  ],
  [
    'status --admin REDIRECTS',
    'none',
    [
      'trellis: REDIRECTS redirects (unexpected redirect), so it is not the admin side of a gateway: name that with --admin URL',
    ],
  ],
  [
    'status --admin ADMIN',
    'wrong',
    [
      'trellis: the admin side at ADMIN has another token: name its configuration with -c, or set TRELLIS_ADMIN_TOKEN',
    ],
  ],
  [
    'status --admin ADMIN',
    'none',
    ['trellis: the admin side requires a token: name the configuration with -c, or set TRELLIS_ADMIN_TOKEN'],
  ],
  [
    'purge --all --service apo --admin ADMIN',
    'right',
    ['trellis: service: no service has this name; the services are api'],
  ],
  [
    'purge --url /nothing --admin ADMIN',
    'right',
    ['trellis: no service is mounted there; trellis routes lists the paths'],
  ],
  [
    'purge --prefix /nothing --admin ADMIN',
    'right',
    ['trellis: no service is mounted there; trellis routes lists the paths'],
  ],
  [
    'warm /nothing /api/%zz --admin ADMIN',
    'right',
    [
      '0 URLs fetched in the background',
      '/nothing: no service is mounted there; trellis routes lists the paths',
      '/api/%zz: GET of this URL is refused, so nothing is stored for it: path: bad-encoding',
    ],
  ],
] as const)(
  'trellis %s with %s token ends with 7, and says what to do about the admin side',
  async (line, which, lines) => {
    expect(await run(line, tokens[which])).toEqual({ end: 7, text: `${lines.join('\n')}\n` })
  },
)
