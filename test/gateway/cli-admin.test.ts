import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { CliPorts } from '../../src/cli/cli-ports.ts'
import { closeAfterAll } from '../support/close.ts'
import { runCommand } from '../support/command.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'

let folder: string
let origin: Origin
let gateway: TestGateway
let file: string
const token = 'token-of-the-admin-side'

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-cli-admin-'))
  origin = await startOrigin()
  const headers = { 'Content-Type': 'text/plain', 'Cache-Control': 'max-age=60', 'Surrogate-Key': 'books' }
  origin.script = ({ target }, wire) => {
    if (target.startsWith('/gone'))
      wire.respond({ status: 404, headers: { 'Content-Type': 'text/plain' }, content: '' })
    else if (target === '/private')
      wire.respond({
        headers: { 'Content-Type': 'text/plain', 'Cache-Control': 'private' },
        content: 'content',
      })
    else wire.respond({ headers, content: 'content' })
  }
  gateway = await startTestGateway({
    admin: { port: 0, token },
    cache: { warm: { perSecond: 1000 } },
    services: {
      api: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
  file = join(folder, 'trellis.yaml')
  await writeFile(
    file,
    JSON.stringify({ admin: { port: Number(new URL(gateway.adminAddress).port), token } }),
  )
})
closeAfterAll(() => [gateway, origin])

const run = (argv: readonly string[], changes: Partial<CliPorts> = {}) =>
  runCommand(argv, { defaultFile: file, ...changes })

const fill = async (...paths: readonly string[]): Promise<void> => {
  for (const path of paths) await (await fetch(gateway.publicAddress + path)).text()
}

describe('trellis purge', () => {
  test.each([
    ['a URL', ['--url', '/a'], '1 stored response removed\n'],
    ['two URLs', ['--url', '/a', '--url', '/b'], '2 stored responses removed\n'],
    ['a tag of the upstream', ['--tag', 'books'], '3 stored responses removed\n'],
    ['a prefix', ['--prefix', '/c'], '1 stored response removed\n'],
    ['all', ['--all'], '3 stored responses removed\n'],
    ['all of one service', ['--all', '--service', 'api'], '3 stored responses removed\n'],
    ['all, softly', ['--all', '--soft'], '3 stored responses marked stale\n'],
    ['all, as a dry run', ['--all', '--dry-run'], '3 stored responses would be removed\n'],
    [
      'all, warming',
      ['--all', '--warm', '2'],
      '3 stored responses removed, 2 fetched again in the background\n',
    ],
  ])('of %s prints what it has done', async (_description, selectors, expected) => {
    await run(['purge', '--all'])
    await fill('/a', '/b', '/c/d')
    expect(await run(['purge', ...selectors])).toEqual({ end: 0, stdout: expected, stderr: '' })
  })

  test('prints JSON with --json', async () => {
    await run(['purge', '--all'])
    await fill('/a')
    const { stdout } = await run(['purge', '--all', '--json'])
    expect(JSON.parse(stdout)).toEqual({ entries: 1, mode: 'hard', dryRun: false })
  })

  test('prints why it was refused', async () => {
    expect(await run(['purge', '--all', '--service', 'none'])).toEqual({
      end: 7,
      stdout: '',
      stderr: 'trellis: service: no service has this name; the services are api\n',
    })
  })
})

test('trellis warm fetches URLs, and names those that it refuses', async () => {
  await run(['purge', '--all'])
  expect(await run(['warm', '/a', '/b'])).toEqual({
    end: 0,
    stdout: '2 URLs fetched in the background\n',
    stderr: '',
  })
  await expect.poll(() => gateway.metric('trellis_cache_entries')).toBe(2)
  const { end, stdout } = await run(['warm', '/a', '/%zz'])
  expect(stdout).toMatch(
    /^1 URL fetched in the background\n\/%zz: GET of this URL is refused, so nothing is stored for it: path: bad-encoding/,
  )
  expect(end).toBe(7)
})

describe('trellis status', () => {
  test('shows readiness, requests, cache and upstreams', async () => {
    await fill('/a', '/a')
    const { end, stdout } = await run(['status'])
    expect(stdout).toMatch(/^gateway +ready; version test, running for \d+ (?:s|min|h)\n/)
    expect(stdout).toMatch(/\nrequests +\d+, \d+\.\d % from the cache, 0\.0 % failed \(5xx\), 0 in flight\n/)
    expect(stdout).toMatch(/\ncache +\d+ responses?, 0\.0 of 256\.0 MiB\n/)
    expect(stdout).toContain(`upstream api  breaker closed\n              ${origin.origin}: healthy\n`)
    expect(end).toBe(0)
  })

  test('prints the report of the admin side with --json', async () => {
    const { stdout } = await run(['status', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ readiness: { ready: true }, build: { version: 'test' } })
  })
})

describe('the admin side', () => {
  const elsewhere = { defaultFile: undefined }

  test('is named by --admin; its token then comes from the environment', async () => {
    const argv = ['status', '--admin', `${gateway.adminAddress}/`]
    expect(await run(argv, { ...elsewhere, env: { TRELLIS_ADMIN_TOKEN: token } })).toMatchObject({ end: 0 })
    expect((await run(argv)).stderr).toContain('the admin side requires a token')
  })

  test('named by --admin gets the token of the configuration that -c names', async () => {
    const argv = ['status', '--admin', gateway.adminAddress, '-c', file]
    expect(await run(argv, elsewhere)).toMatchObject({ end: 0 })
  })

  test('that refuses the token ends the command with 7', async () => {
    const env = { TRELLIS_ADMIN_TOKEN: 'another' }
    expect(await run(['purge', '--all', '--admin', gateway.adminAddress], { ...elsewhere, env })).toEqual({
      end: 7,
      stdout: '',
      stderr: `trellis: the admin side at ${gateway.adminAddress} has another token: name its configuration with -c, or set TRELLIS_ADMIN_TOKEN\n`,
    })
  })

  test('that cannot be reached ends the command with 7', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    expect(await run(['status', '--admin', url])).toEqual({
      end: 7,
      stdout: '',
      stderr: `trellis: no gateway answers at ${url} (ECONNREFUSED): start it, or name its admin side with --admin URL\n`,
    })
  })

  test('that is another program is reported', async () => {
    expect(await run(['status', '--admin', origin.origin])).toMatchObject({
      end: 7,
      stderr: `trellis: ${origin.origin} is not the admin side of a gateway (its answer is not JSON): name that with --admin URL\n`,
    })
  })

  test.each([
    [
      'an unknown key',
      (admin: string) => `admin: ${admin}\nlisten: { prot: 1 }`,
      '2:11 listen.prot: unknown key',
    ],
    ['a syntax fault behind it', (admin: string) => `admin: ${admin}\nlisten: { port: 1`, '2:18 not YAML'],
    [
      'a missing variable',
      (admin: string) => `admin: ${admin}\npublicUrl: '\${NONE}'`,
      '2:12 publicUrl: the environment variable NONE is not set',
    ],
  ])('of a file with %s is asked all the same, and the first fault is named', async (_what, text, named) => {
    const faulty = join(folder, 'faulty.yaml')
    await writeFile(faulty, text(JSON.stringify(JSON.parse(await readFile(file, 'utf8')).admin)))
    const { end, stdout, stderr } = await run(['purge', '--all', '-c', faulty])
    expect(stderr).toContain(`${faulty} has faults, the first is ${named}`)
    expect(stderr).toContain(`; asking the gateway at ${gateway.adminAddress}\n`)
    expect(stdout).toMatch(/^\d+ stored responses? removed\n$/)
    expect(end).toBe(0)
  })

  test('of a file with a fault in or before its section is that of --admin or the default, without the token of the file', async () => {
    const faulty = join(folder, 'faulty.yaml')
    for (const text of [`admin: { port: 1, token: ${token}`, `admin: { port: 1, token: ${token}, x: 1 }`]) {
      await writeFile(faulty, text)
      const argv = ['status', '-c', faulty, '--admin', gateway.adminAddress]
      expect((await run(argv)).stderr).toContain('the admin side requires a token')
      expect(await run(argv, { env: { TRELLIS_ADMIN_TOKEN: token } })).toMatchObject({ end: 0 })
    }
  })

  test('of a file that does not exist gets no request', async () => {
    const { end, stderr } = await run(['purge', '--all', '-c', join(folder, 'none.yaml')])
    expect(stderr).toContain('it does not exist (ENOENT)')
    expect(end).toBe(1)
  })
})

test('status names the line and the key of a reload that was refused', async () => {
  const services = { a: { contract: 'plants', upstream: { targets: [origin.origin] } } }
  const broken = await startTestGateway({ services })
  await broken.put({ services: { a: { ...services.a, x: 1 } } })
  const { stdout } = await run(['status', '--admin', broken.adminAddress], { defaultFile: undefined })
  expect(stdout).toMatch(/\ndegraded +config: the last reload was refused\n/)
  expect(stdout).toMatch(
    /\nwarning +reload: the file is not in use, the earlier configuration is: \d+:\d+ services.a.x: unknown key; the keys here are: [^\n]*\n/,
  )
  await broken.close()
})

describe('trellis warm --wait', () => {
  test('ends with 0 when every URL is stored', async () => {
    await run(['purge', '--all'])
    expect(await run(['warm', '--wait', '/a', '/b'])).toEqual({
      end: 0,
      stdout: '2 of 2 URLs stored\n',
      stderr: '',
    })
    await expect(gateway.metric('trellis_cache_entries')).resolves.toBe(2)
  })

  test('names the URLs that are not stored with the reasons, and ends with 1', async () => {
    await run(['purge', '--all'])
    const urls = [
      '/a',
      '/%zz',
      '/gone/404',
      '/private',
      ...Array.from({ length: 60 }, (_, at) => `/gone/${at}`),
    ]
    const { end, stdout } = await run(['warm', '--wait', ...urls])
    expect(stdout).toMatch(/^1 of 64 URLs stored\n/)
    expect(stdout).toContain(
      '\n/%zz: GET of this URL is refused, so nothing is stored for it: path: bad-encoding',
    )
    expect(stdout).toContain('\n/gone/404: status 404\n')
    expect(stdout).toContain('\n/private: not stored: private\n')
    expect(stdout).toMatch(/\nand 13 more; --json prints all\n$/)
    expect(end).toBe(1)
    const json = await run(['warm', '--wait', '--json', '/gone/404'])
    expect(JSON.parse(json.stdout)).toEqual({
      warming: 1,
      refused: [],
      stored: 0,
      notStored: [{ url: '/gone/404', outcome: 'failed', detail: 'status 404' }],
    })
  })
})

test('trellis changed begins a build, and lists what has changed since another one', async () => {
  const first = JSON.parse((await run(['changed', '--json'])).stdout)
  expect(first).toEqual({ build: expect.any(String), everything: true })
  await fetch(`${gateway.publicAddress}/a`, { headers: { 'Trellis-Build': first.build } })
  const { end, stdout } = await run(['changed', '--since', first.build])
  expect(end).toBe(0)
  expect(stdout).toMatch(/^build +[\w-]{36}\nchanged +0 of 1 URL changed since the build before\n$/)
  const unknown = await run(['changed', '--since', 'of-yesterday'])
  expect(unknown.stderr).toContain('No such build is known')
})
