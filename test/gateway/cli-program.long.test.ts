import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { builtGateway } from '../support/built-gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { freePort } from '../support/ports.ts'

let main = ''
let folder = ''
beforeAll(async () => {
  main = await builtGateway()
  folder = await mkdtemp(join(tmpdir(), 'trellis-program-'))
})

type End = { readonly code: number | string | null; readonly stdout: string; readonly stderr: string }

/** Runs the program to its end, without -c with the configuration of the demo; a start that does not end is a failure. */
const run = (words: readonly string[], env: Record<string, string> = {}): Promise<End> =>
  new Promise((resolve) => {
    const hasFile = words.includes('-c') || words.includes('schema')
    const args = hasFile ? words : [...words, '--demo']
    const options = { env: { PATH: process.env['PATH'], ...env }, timeout: 50_000 }
    execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? null), stdout, stderr })
    })
  })

const fileWith = async (name: string, text: string): Promise<string> => {
  const file = join(folder, name)
  await writeFile(file, text)
  return file
}

test('check reports valid and faulty files, in its exit code too', async () => {
  expect(await run(['check'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('config/gateway.yaml: valid'),
  })
  const file = await fileWith('faulty.yaml', 'a: 1\nb: 2\nlisten: { port: x }')
  const { code, stdout } = await run(['check', '-c', file])
  expect(stdout).toContain('3 faults')
  expect(code).toBe(1)
})

test('doctor ends with its findings for the demo, whose upstreams run only while it does', async () => {
  const { code, stdout } = await run(['doctor'])
  expect([0, 1]).toContain(code)
  expect(stdout).toContain('upstream of plants')
})

test.each(['dist/main.js', 'build.mjs'])('%s names the Node that it needs in one line', async (program) => {
  const older = `import module from 'node:module'
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.4' } })
    module.syncBuiltinESMExports()`
  const preload = `data:text/javascript,${encodeURIComponent(older)}`
  const args = ['--import', preload, program, '--if-outdated']
  const { stderr, code } = await new Promise<{ stderr: string; code: unknown }>((resolve) =>
    execFile(process.execPath, args, (error, _stdout, stderr) => resolve({ stderr, code: error?.code })),
  )
  const { engines } = JSON.parse(await readFile('package.json', 'utf8'))
  const needed = engines.node.replace('>=', '')
  expect(stderr).toBe(
    `trellis: Node ${needed} or newer is needed, and this is Node 18.20.4: install a newer one from https://nodejs.org\n`,
  )
  expect(code).toBe(program === 'build.mjs' ? 1 : 3)
})

test('schema prints config/gateway.schema.json', async () => {
  const { code, stdout } = await run(['schema'])
  expect(stdout).toBe(await readFile('config/gateway.schema.json', 'utf8'))
  expect(code).toBe(0)
})

test('the shipped configuration takes its addresses from the environment', async () => {
  const { code, stdout } = await run(['check'], { TRELLIS_PORT: '9090' })
  expect(stdout).toContain('listen.port: must differ from admin.port (9090')
  expect(code).toBe(1)
})

test('a port in use is reported, and the process ends with 3 although servers are already open', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const file = await fileWith(
    'taken.yaml',
    `listen: { port: ${port} }\nadmin: { port: 0 }\nservices: { plants: { contract: plants } }`,
  )
  const { code, stderr } = await run(['start', '-c', file])
  taken.close()
  expect(stderr).toContain(
    `trellis: cannot start: listen.port: another program listens on 127.0.0.1:${port}; `,
  )
  expect(code).toBe(3)
})

test('a started gateway answers, and ends with 0 on SIGTERM', async () => {
  const gateway = await startGatewayProcess({})
  const response = await fetch(`${gateway.origin}/index.php/site-json/site/v2/posts?per_page=1`)
  expect(response.status).toBe(200)
  const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
  expect(metrics).toContain('trellis_requests_total{service="site",route="/site/v2/posts",method="GET"')
  expect(await gateway.stop()).toBe(0)
})

test('SIGUSR1 and SIGUSR2 neither open a debugger nor end a gateway or its workers', async () => {
  const gateway = await startGatewayProcess({ workers: 2 })
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) {
    // To the whole group: the parent and its workers.
    process.kill(-gateway.program.pid, signal)
    await expect.poll(() => gateway.program.output()).toContain(`trellis: ${signal}, nothing is done`)
  }
  const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
  expect(metrics).toMatch(/^trellis_workers_ready 2$/m)
  expect(gateway.program.output()).not.toContain('Debugger')
  await gateway.stop()
})

test('the demo says at / where to go, and other requests reach the services', async () => {
  const [port, adminPort] = [await freePort(), await freePort()]
  const env = { TRELLIS_PORT: `${port}`, TRELLIS_ADMIN_PORT: `${adminPort}`, TRELLIS_DRAIN_DELAY: '0s' }
  const demo = spawn(process.execPath, ['dist/main.js', 'start', '--demo'], {
    env: { ...process.env, ...env },
    stdio: 'ignore',
  })
  const ended = once(demo, 'exit')
  const origin = `http://127.0.0.1:${port}`
  await expect
    .poll(
      () =>
        fetch(origin).then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 60_000 },
    )
    .toBe(200)
  const response = await fetch(origin)
  const page = await response.text()
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page).toContain(`curl -i '${origin}/index.php/site-json/site/v2/posts/1?_fields=slug'`)
  expect(page).toContain(`href="http://127.0.0.1:${adminPort}/"`)
  expect(page).not.toContain('{{')
  for (const [, href = ''] of page.matchAll(/<a href="([^"]+)"/g))
    expect([href, (await fetch(href)).status]).toEqual([href, 200])
  expect((await fetch(`${origin}/plants`)).status).toBe(401)
  expect((await fetch(origin, { method: 'DELETE' })).status).toBe(404)
  demo.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})
