import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { type BackendOptions, startBackend } from '../../packages/promise-suite/backend.js'
import { startTestGateway } from '../support/gateway.ts'
import { runNginx } from '../support/nginx.ts'
import { freePort } from '../support/ports.ts'
import { startProcess, untilReady } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'

/** `PROMISE_SUITE_SECONDS=60 npx vitest run test/real/promise-suite.real.test.ts` prints the table of docs/evidence/promise.md. */
const seconds = Number(process.env['PROMISE_SUITE_SECONDS'] ?? 1)
const isLong = process.env['PROMISE_SUITE_SECONDS'] !== undefined
const seed = process.env['SEED'] ?? '1'
const timeout = seconds * 5_000 + 60_000

const folder = 'packages/promise-suite'

type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string }

const suite = (...args: readonly string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(process.execPath, [`${folder}/cli.js`, ...args], (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
    )
  })

type Row = {
  readonly name: string
  readonly reads: number
  readonly hits: number
  readonly writes: number
  readonly stale: number
  readonly lost: number
  readonly failed: number
  readonly nines: number
}

const filled = async (file: string, values: Readonly<Record<string, string | number>>): Promise<string> =>
  Object.entries(values).reduce(
    (text, [name, value]) => text.replaceAll(`\${${name}}`, `${value}`),
    await readFile(`${folder}/caches/${file}`, 'utf8'),
  )

type Running = { readonly url: string; stop(): Promise<unknown> }
type Start = (backend: { readonly port: number }) => Promise<Running>

const nginx: Start = async ({ port: backend }) => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const config = await filled('nginx.conf', { PORT: port, BACKEND: `127.0.0.1:${backend}` })
  const { stop } = await runNginx(
    (own) => config.replaceAll('\u0024{FOLDER}', own),
    async () => (await fetch(`${url}/reads`)).text(),
  )
  return { url, stop }
}

const varnish: Start = async ({ port: backend }) => {
  const own = await mkdtemp(join(tmpdir(), 'trellis-varnish-'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const file = join(own, 'default.vcl')
  await writeFile(file, await filled('default.vcl', { BACKEND_HOST: '127.0.0.1', BACKEND_PORT: backend }))
  const place = ['-F', '-j', 'none', '-a', `127.0.0.1:${port}`, '-T', 'none', '-n', join(own, 'state')]
  const program = startProcess('varnishd', [...place, '-f', file, '-s', 'malloc,64m'], {
    env: { PATH: `${process.env['PATH']}:/usr/sbin` },
  })
  await untilReady(program, () => fetch(`${url}/reads`))
  return {
    url,
    stop: async () => {
      await program.stop()
      await rm(own, { recursive: true, force: true })
    },
  }
}

const trellis: Start = async ({ port: backend }) => {
  const config = parse(
    await filled('trellis.yaml', { PORT: 0, ADMIN_PORT: 0, BACKEND: `127.0.0.1:${backend}` }),
  )
  const { services } = config as { readonly services: Readonly<Record<string, unknown>> }
  const gateway = await startTestGateway({ services })
  return { url: gateway.publicAddress, stop: gateway.close }
}

/** What the driver finds through a cache, and its exit code. */
const found = async (
  name: string,
  start: Start,
  options: Pick<BackendOptions, 'onWrite'> = {},
): Promise<Row & { readonly code: number }> => {
  const backend = await startBackend(options)
  const running = await start(backend)
  try {
    const url = `${name}=${running.url}`
    const { code, stdout, stderr } = await suite(
      '--json',
      '--reads',
      '300',
      '--seed',
      seed,
      '--seconds',
      `${seconds}`,
      url,
    )
    if (stdout === '') throw new Error(stderr)
    const [row] = (JSON.parse(stdout) as { readonly caches: readonly Row[] }).caches
    if (row === undefined) throw new Error(stdout)
    if (isLong) process.stdout.write(`${JSON.stringify(row)}\n`)
    expect(row.failed).toBe(0)
    expect(row.writes).toBeGreaterThan(24)
    return { ...row, code }
  } finally {
    await running.stop()
    await backend.close()
  }
}

test('the suite ends with 2 where it cannot write its history: 1 says that a response was stale', async () => {
  const { code, stderr } = await suite('--history', '/nowhere/history', 'http://127.0.0.1:9')
  expect([code, stderr]).toEqual([2, expect.stringContaining('/nowhere/history')])
})

describeWith('nginx', 'the suite before nginx', () => {
  test(
    'finds reads that are older than an acknowledged write',
    async () => {
      const row = await found('nginx', nginx)
      expect(row.hits).toBeGreaterThan(30)
      expect(row).toMatchObject({ code: 1, nines: 0 })
      expect(row.stale).toBeGreaterThan(0)
    },
    timeout,
  )
})

describeWith('varnish', 'the suite before Varnish', () => {
  test(
    'the application bans before it answers: what is left are responses that were on their way',
    async () => {
      let address = ''
      const row = await found(
        'Varnish',
        async (backend) => {
          const running = await varnish(backend)
          address = running.url
          return running
        },
        { onWrite: (groups) => fetch(address, { method: 'BAN', headers: { Groups: groups.join('|') } }) },
      )
      expect(row.hits).toBeGreaterThan(30)
      expect(row.stale).toBeLessThan(row.reads / 4)
    },
    timeout,
  )

  test(
    'without bans it loses every invalidation',
    async () => {
      const row = await found('Varnish without bans', varnish)
      expect(row).toMatchObject({ code: 1, nines: 0 })
      expect(row.lost).toBeGreaterThan(0)
    },
    timeout,
  )
})

test(
  'the suite before Trellis finds nothing that is older than an acknowledged write',
  async () => {
    const row = await found('Trellis', trellis)
    expect(row).toMatchObject({ code: 0, stale: 0, lost: 0 })
    expect(row.hits).toBeGreaterThan(30)
    expect(row.nines).toBeGreaterThan(0)
  },
  timeout,
)

test(
  'without a cache nothing is a hit, so that nothing is shown',
  async () => {
    const row = await found('none', async ({ port }) => ({
      url: `http://127.0.0.1:${port}`,
      stop: async () => {},
    }))
    expect(row).toMatchObject({ code: 0, hits: 0, stale: 0, lost: 0, nines: 0 })
  },
  timeout,
)

test('the suite refuses what it cannot compare', async () => {
  expect(await suite()).toMatchObject({ code: 2, stderr: expect.stringContaining('a URL is missing') })
  expect(await suite('--seconds', 'x', 'http://127.0.0.1')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--seconds: an integer from 1 to 86400, not x'),
  })
  const nobody = `http://127.0.0.1:${await freePort()}`
  expect(await suite('--seconds', '1', nobody)).toMatchObject({
    code: 2,
    stderr: `${nobody} acknowledges no write\n`,
  })
})
