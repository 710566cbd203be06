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
  [
    '',
    'a command is missing; the commands are start, check, doctor, init, schema, routes, explain, status, advise, purge and warm',
    'trellis --help',
  ],
  ['chekc', 'unknown command "chekc" (did you mean check?)', 'trellis --help'],
  ['strat', 'unknown command "strat" (did you mean start?)', 'trellis --help'],
  ['START', 'unknown command "START" (did you mean start?)', 'trellis --help'],
  [
    'run',
    'unknown command "run"; the commands are start, check, doctor, init, schema, routes, explain, status, advise, purge and warm',
    'trellis --help',
  ],
  [
    'trellis.yaml',
    'unknown command "trellis.yaml"; the commands are start, check, doctor, init, schema, routes, explain, status, advise, purge and warm',
    'trellis --help',
  ],
  ['-x', 'unknown option "-x"; trellis without a command takes --help and --version', 'trellis --help'],
  ['--port 8080', 'unknown option "--port"; the port is listen.port of the configuration', 'trellis --help'],
  [
    '--config trellis.yaml',
    'a command is missing; the commands are start, check, doctor, init, schema, routes, explain, status, advise, purge and warm',
    'trellis --help',
  ],
  [
    'foo --help',
    'unknown command "foo"; the commands are start, check, doctor, init, schema, routes, explain, status, advise, purge and warm',
    'trellis --help',
  ],
  ['help chek', 'unknown command "chek" (did you mean check?)', 'trellis --help'],
  [
    'start --port 8080',
    'unknown option "--port"; the port is listen.port of the configuration',
    'trellis start --help',
  ],
  [
    'start -p 8080',
    'unknown option "-p"; start takes -c, --demo, --help and --version',
    'trellis start --help',
  ],
  [
    'start --host 0.0.0.0',
    'unknown option "--host"; the address is listen.host of the configuration',
    'trellis start --help',
  ],
  [
    'start trellis.yaml',
    'start takes options only: name a configuration with -c FILE, or an OpenAPI document with --demo openapi FILE, found "trellis.yaml"',
    'trellis start --help',
  ],
  ['start -c', '-c expects a configuration file, e.g. -c trellis.yaml', 'trellis start --help'],
  ['start --config', '--config expects a configuration file, e.g. -c trellis.yaml', 'trellis start --help'],
  [
    'start --config=',
    '--config expects a configuration file, e.g. -c trellis.yaml, found an empty text',
    'trellis start --help',
  ],
  [
    'start -c --demo',
    '-c expects a configuration file, e.g. -c trellis.yaml, found "--demo"',
    'trellis start --help',
  ],
  [
    'start --upstreams',
    '--upstreams is an option of check, routes and explain: leave it out',
    'trellis start --help',
  ],
  ['start --demo -c x', '--demo has its own configuration; leave out the file', 'trellis start --help'],
  [
    'start --demo openapi',
    'start takes options only: name a configuration with -c FILE, or an OpenAPI document with --demo openapi FILE, found "openapi"',
    'trellis start --help',
  ],
  ['check -c=x.yaml', 'write -c x.yaml without "="', 'trellis check --help'],
  ['check -config x.yaml', 'write --config with two dashes', 'trellis check --help'],
  [
    'check --conf x.yaml',
    'unknown option "--conf"; check takes -c, --demo, --upstreams, --json, --help and --version',
    'trellis check --help',
  ],
  [
    'check --fiel x',
    'unknown option "--fiel"; check takes -c, --demo, --upstreams, --json, --help and --version',
    'trellis check --help',
  ],
  ['check a.yaml b.yaml', 'check takes one FILE, found "a.yaml", "b.yaml"', 'trellis check --help'],
  [
    'check a.yaml -c b.yaml',
    'one configuration file is read, found 2: b.yaml and a.yaml',
    'trellis check --help',
  ],
  ['check -c a --config=b', 'one configuration file is read, found 2: a and b', 'trellis check --help'],
  ['check --drift', '--drift is an option of routes only: leave it out', 'trellis check --help'],
  ["check -H 'a: b'", '-H is an option of explain only: leave it out', 'trellis check --help'],
  [
    'check --admin http://a',
    '--admin is an option of status, advise, purge and warm: leave it out',
    'trellis check --help',
  ],
  ['check --force', '--force is an option of init only: leave it out', 'trellis check --help'],
  ['check --json=true', '--json takes no value: leave out "=true"', 'trellis check --help'],
  [
    'doctor trellis.yaml',
    'doctor takes options only: name a configuration with -c FILE, found "trellis.yaml"',
    'trellis doctor --help',
  ],
  ['schema -c x', 'schema takes no -c: it is the same for every file', 'trellis schema --help'],
  ['schema --demo', 'schema takes no --demo: it is the same for every file', 'trellis schema --help'],
  [
    'schema --json',
    '--json is an option of check, doctor, routes, explain, status, advise, purge and warm: leave it out',
    'trellis schema --help',
  ],
  ['schema x', 'schema takes options only: leave out other words, found "x"', 'trellis schema --help'],
  [
    'routes --drift --upstreams',
    '--drift includes --upstreams; leave out --upstreams',
    'trellis routes --help',
  ],
  ['routes --upstrems', 'unknown option "--upstrems" (did you mean --upstreams?)', 'trellis routes --help'],
  ['explain', 'explain takes METHOD and URL, e.g. trellis explain GET /plants', 'trellis explain --help'],
  [
    'explain GET',
    'explain takes METHOD and URL, e.g. trellis explain GET /plants, found "GET"',
    'trellis explain --help',
  ],
  [
    'explain /plants',
    'explain takes METHOD and URL, e.g. trellis explain GET /plants, found "/plants"',
    'trellis explain --help',
  ],
  [
    'explain /plants GET',
    'explain expects a method, e.g. GET, found "/plants"; the order is trellis explain METHOD URL',
    'trellis explain --help',
  ],
  [
    'explain GET plants',
    'explain expects a path such as /plants, or a URL, found "plants"',
    'trellis explain --help',
  ],
  ["explain GET ''", 'explain expects a path such as /plants, or a URL, found ""', 'trellis explain --help'],
  [
    'explain GET ftp://127.0.0.1/plants',
    'explain expects a path such as /plants, or a URL, found "ftp://127.0.0.1/plants"',
    'trellis explain --help',
  ],
  [
    "explain 'GE T' /plants",
    'explain expects a method, e.g. GET, found "GE T"; the order is trellis explain METHOD URL',
    'trellis explain --help',
  ],
  [
    'explain -X POST /plants',
    'unknown option "-X"; explain takes -c, --demo, -H, --upstreams, --json, --body, --help and --version',
    'trellis explain --help',
  ],
  ['explain GET /x -H', "-H expects 'Name: value', e.g. -H 'Accept: text/html'", 'trellis explain --help'],
  [
    'explain GET /x -H Accept',
    `-H expects 'Name: value', e.g. -H 'Accept: text/html', found "Accept"`,
    'trellis explain --help',
  ],
  [
    'explain GET /x -H -c x',
    `-H expects 'Name: value', e.g. -H 'Accept: text/html', found "-c"`,
    'trellis explain --help',
  ],
  [
    'explain GET /x --service api',
    '--service is an option of purge only: leave it out',
    'trellis explain --help',
  ],
  ['status now', 'status takes options only: leave out other words, found "now"', 'trellis status --help'],
  [
    'status --admin localhost',
    '--admin expects the URL of the admin side, e.g. http://127.0.0.1:9090, found "localhost"',
    'trellis status --help',
  ],
  [
    'status --admin 127.0.0.1:9090',
    '--admin expects the URL of the admin side, e.g. http://127.0.0.1:9090, found "127.0.0.1:9090"',
    'trellis status --help',
  ],
  [
    'status --admin ws://127.0.0.1:9090',
    '--admin expects the URL of the admin side, e.g. http://127.0.0.1:9090, found "ws://127.0.0.1:9090"',
    'trellis status --help',
  ],
  [
    'status --admin http://127.0.0.1:99999',
    '--admin expects the URL of the admin side, e.g. http://127.0.0.1:9090, found "http://127.0.0.1:99999"',
    'trellis status --help',
  ],
  [
    'status --admin http://a --admin http://b',
    '--admin is given more than once: leave out all but one',
    'trellis status --help',
  ],
  [
    'status --token x',
    'unknown option "--token"; the token is admin.token of the configuration, or TRELLIS_ADMIN_TOKEN',
    'trellis status --help',
  ],
  ['purge', 'purge expects --url, --tag, --prefix or --all', 'trellis purge --help'],
  [
    'purge /a',
    'purge takes options only: name what to remove with --url, --tag or --prefix, found "/a"',
    'trellis purge --help',
  ],
  ['purge --soft', 'purge expects --url, --tag, --prefix or --all', 'trellis purge --help'],
  [
    'purge --url',
    '--url expects a public URL or path, e.g. --url /wp-json/wp/v2/posts',
    'trellis purge --help',
  ],
  [
    "purge --tag ''",
    '--tag expects a tag, as `trellis explain` shows it, found an empty text',
    'trellis purge --help',
  ],
  ['purge --all --tag a', '--all includes everything else; leave out the others', 'trellis purge --help'],
  ['purge --url api', '--url expects a path such as /plants, or a URL, found "api"', 'trellis purge --help'],
  [
    'purge --prefix shop',
    '--prefix expects the beginning of public paths, e.g. --prefix /shop, found "shop"',
    'trellis purge --help',
  ],
  [
    'purge --all --dry-run --warm 5',
    '--dry-run removes nothing, so there is nothing to --warm',
    'trellis purge --help',
  ],
  ['purge --all --warm x', '--warm expects a number from 0 to 1000, found "x"', 'trellis purge --help'],
  ['purge --all --warm 5000', '--warm expects a number from 0 to 1000, found "5000"', 'trellis purge --help'],
  [
    'purge --all --service=a --service=b',
    '--service is given more than once: leave out all but one',
    'trellis purge --help',
  ],
  ['warm', 'warm takes 1 to 1000 URLs, e.g. trellis warm /plants', 'trellis warm --help'],
  ['warm --wiat /a', 'unknown option "--wiat" (did you mean --wait?)', 'trellis warm --help'],
  ['warm plants', 'warm expects a path such as /plants, or a URL, found "plants"', 'trellis warm --help'],
  [
    'init wordpres',
    'init "wordpres": expected wordpress, openapi or open, or companion, dashboards, systemd or compose (did you mean wordpress?)',
    'trellis init --help',
  ],
  [
    'init http://127.0.0.1:3000',
    'init "http://127.0.0.1:3000": expected wordpress, openapi or open, or companion, dashboards, systemd or compose (did you mean init wordpress http://127.0.0.1:3000, or init open http://127.0.0.1:3000?)',
    'trellis init --help',
  ],
  [
    'init wordpress blog.example',
    'init wordpress expects the http or https URL of the upstream, without a credential, e.g. https://blog.example',
    'trellis init --help',
  ],
  [
    'init open http://a:b@c',
    'init open expects the http or https URL of the upstream, without a credential, e.g. http://127.0.0.1:3000',
    'trellis init --help',
  ],
  ['init open http://a http://b', 'init open takes one URL', 'trellis init --help'],
  [
    'init openapi',
    'init openapi expects the file of a document, e.g. trellis init openapi pets.yaml',
    'trellis init --help',
  ],
  [
    'init openapi a b c',
    'init takes wordpress or open and the URL of the upstream, openapi, a document and that URL, or companion, dashboards, systemd or compose and a folder, found "openapi", "a", "b"',
    'trellis init --help',
  ],
  [
    'init systemd',
    'init systemd expects the folder to write to, e.g. trellis init systemd ./systemd',
    'trellis init --help',
  ],
  [
    'init compos x',
    'init "compos": expected wordpress, openapi or open, or companion, dashboards, systemd or compose (did you mean compose?)',
    'trellis init --help',
  ],
])('trellis %s ends with 2, says what to write, and where to read more', async (line, message, help) => {
  expect(await run(line)).toEqual({ end: 2, text: `trellis: ${message}\nTry: ${help}\n` })
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
      'Mend the document, or name another one: trellis init openapi FILE',
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
