import { execFile } from 'node:child_process'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { builtGateway } from '../support/built-gateway.ts'
import { startTestGateway } from '../support/gateway.ts'
import { runNginx } from '../support/nginx.ts'
import { startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'
import { blocksOf, comparable, printedBy, shownCommands } from '../support/shown-commands.ts'

// quick-start.test.ts covers WordPress, migration.test.ts nginx and Varnish.

const root = fileURLToPath(new URL('../..', import.meta.url))
const pageOf = (name: string): Promise<string> => readFile(join(root, 'docs', name), 'utf8')

/** Ports of this run in place of those that the pages name. */
const portsFor = async (page: string): Promise<(text: string) => string> => {
  const named = new Set([...page.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port = '']) => port))
  const ports = new Map<string, number>()
  for (const port of named) ports.set(port, await freePort())
  return (text) => text.replaceAll(/\b(3000|8080|9090)\b/g, (port) => String(ports.get(port) ?? port))
}

const untilResponded = (program: RunningProcess, url: string): Promise<void> =>
  untilReady(program, async () => {
    const response = await fetch(url)
    await response.arrayBuffer()
    if (!response.ok) throw new Error(`${url}: ${response.status}`)
  })

const api = await pageOf('quick-start-api.md')
const reasons = await pageOf('why-not-cached.md')
const canonical = await pageOf('canonical-requests.md')
const deployment = await pageOf('deployment.md')

/** The table of canonical-requests.md: a query, and what it becomes. */
const merged = [...canonical.matchAll(/^\|[^|]+\|`([^`]+)`\|`([^`]+)`\|$/gm)].map(
  ([, example = '', becomes = '']) => ({ example, becomes }),
)

describe('quick-start-api.md: a reader fronts an API', () => {
  const programs: RunningProcess[] = []
  let here: (text: string) => string
  let folder: string
  let trellis: string

  const start = async (command: string, ready: string): Promise<void> => {
    const program = startProcess('bash', ['-c', `cd ${folder} && exec ${command}`])
    programs.push(program)
    await untilResponded(program, here(ready))
  }

  beforeAll(async () => {
    here = await portsFor(api)
    trellis = `${process.execPath} ${await builtGateway()}`
    folder = await mkdtemp(join(tmpdir(), 'trellis-reader-'))
    const listen = here('listen: { port: 8080 }\nadmin: { port: 9090 }\n')
    await writeFile(join(folder, 'books.mjs'), here(blocksOf(api, 'js').join('')))
    await writeFile(join(folder, 'books.yaml'), listen + here(blocksOf(api, 'yaml').join('')))
    const [, startApi = '', startGateway = ''] = blocksOf(api, 'sh')
    await start(startApi.trim(), 'http://127.0.0.1:3000/books')
    await start(startGateway.trim().replace('npx trellis', trellis), 'http://127.0.0.1:9090/readyz')
  })
  afterAll(() => Promise.all(programs.map((program) => program.stop(0))))

  test('the page has commands for each step', () => {
    expect(blocksOf(api, 'sh')).toHaveLength(3)
    expect(shownCommands(api)).toHaveLength(7)
  })

  test.each(shownCommands(api))('$command', async ({ command, output }) => {
    const printed = await printedBy(here(command).replace('npx trellis', trellis), { cwd: folder })
    expect(comparable(printed)).toBe(comparable(output))
  })
})

describe('why-not-cached.md and canonical-requests.md: a reader finds out why a response is not cached', () => {
  let here: (text: string) => string
  let gateway: RunningProcess
  let trellis: string

  beforeAll(async () => {
    here = await portsFor(reasons + api)
    trellis = `${process.execPath} ${await builtGateway()}`
    gateway = startProcess('bash', ['-c', `exec ${trellis} start -c config/gateway.yaml`], {
      cwd: root,
      env: { TRELLIS_PORT: here('8080'), TRELLIS_ADMIN_PORT: here('9090') },
    })
    await untilResponded(gateway, here('http://127.0.0.1:9090/readyz'))
  })
  afterAll(() => gateway?.stop(0))

  test('the pages have commands', () => {
    expect([shownCommands(reasons).length, shownCommands(canonical).length, merged.length]).toEqual([
      3, 1, 10,
    ])
  })

  test.each([...shownCommands(reasons), ...shownCommands(canonical)])(
    '$command',
    async ({ command, output }) => {
      const printed = await printedBy(here(command).replace('npx trellis', trellis), { cwd: root })
      expect(comparable(printed)).toBe(comparable(output))
    },
  )

  test.each(merged)('$example is the same request as $becomes', async ({ example, becomes }) => {
    const explained = async (query: string): Promise<unknown> => {
      const url = encodeURIComponent(`/index.php/site-json/site/v2/posts?${query}`)
      const response = await fetch(here(`http://127.0.0.1:9090/explain?method=GET&url=${url}`))
      return ((await response.json()) as Record<string, unknown>)['canonicalTarget']
    }
    expect(await explained(example)).toBe(`/site/v2/posts?${becomes}`)
    expect(await explained(becomes)).toBe(`/site/v2/posts?${becomes}`)
  })
})

describeWith('nginx', 'deployment.md: a reader puts the gateway behind a TLS proxy', () => {
  const section = deployment.split(/^## /m).find((part) => part.startsWith('Behind a TLS proxy\n')) ?? ''

  test('the upstream gets https and the address of the client, whatever the client says', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-tls-proxy-'))
    const key = ['-newkey', 'rsa:2048', '-nodes', '-keyout', join(folder, 'key.pem')]
    await promisify(execFile)('openssl', [
      ...['req', '-x509', '-subj', '/CN=localhost', '-days', '2', '-out', join(folder, 'cert.pem')],
      ...key,
    ])
    const [port, tlsPort] = [await freePort(), await freePort()]
    const origin = await startOrigin((_, wire) => wire.respond({ content: 'ok' }))
    const settings = {
      ...parse(blocksOf(section, 'yaml').join('')),
      listen: { host: '127.0.0.1', port },
      services: { api: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
    }
    const gateway = await startTestGateway(settings)
    const read = (): Promise<string> =>
      printedBy(`curl -sk -H 'X-Forwarded-For: 192.0.2.1' https://127.0.0.1:${tlsPort}/x`)
    const nginx = await runNginx(
      () =>
        blocksOf(section, 'nginx')
          .join('')
          .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
          .replace('listen 443', `listen 127.0.0.1:${tlsPort}`)
          .replaceAll(/\/etc\/ssl\/www\.(pem|key)/g, (_, kind) =>
            join(folder, kind === 'pem' ? 'cert.pem' : 'key.pem'),
          ),
      async () => expect(await read()).not.toBe(''),
    )
    await read()
    const { headers } = origin.received.at(-1) ?? { headers: {} }
    expect(headers).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'https',
      forwarded: 'for=127.0.0.1;proto=https;host="www.example.org"',
    })
    await Promise.all([nginx.stop(), gateway.close(), origin.close()])
  })
})
