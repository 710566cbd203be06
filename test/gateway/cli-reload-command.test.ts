import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCommand } from '../support/command.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

const token = 'token-of-the-admin-side'
let gateway: TestGateway

const api = { contract: 'open', mount: '/api', upstream: { targets: ['http://127.0.0.1:1'] } }
const first = { admin: { token }, services: { api } }

beforeAll(async () => {
  gateway = await startTestGateway(first)
})
afterAll(() => gateway.close())

const reload = (...words: readonly string[]) =>
  runCommand(['reload', '--admin', gateway.adminAddress, ...words], { env: { TRELLIS_ADMIN_TOKEN: token } })

test('says what has changed once the new configuration is in force', async () => {
  const moved = { ...api, mount: '/moved' }
  gateway.write({ ...first, rateLimitKeys: 10, services: { api: moved, other: { ...api, mount: '/other' } } })
  const { end, stdout } = await reload()
  expect(stdout).toMatch(
    /^The new configuration is in force, hash [0-9a-f]{16}\. Changed: rateLimitKeys, services\.api\.mount, services\.other \(new\)\.\n$/,
  )
  expect(end).toBe(0)
  expect((await fetch(`${gateway.publicAddress}/moved/x`)).status).toBe(502)
  expect((await fetch(`${gateway.publicAddress}/api/x`)).status).toBe(404)
  const again = await reload()
  expect([again.end, again.stdout]).toEqual([
    0,
    expect.stringMatching(/^Nothing has changed: .* already, hash/),
  ])
  const { stdout: json } = await reload('--json')
  expect(JSON.parse(json)).toMatchObject({ outcome: 'unchanged', changed: [] })
})

test('of a file with faults it lists them with line and key, and ends with 1', async () => {
  gateway.write('listn: { port: 8080 }\n')
  const { end, stdout, stderr } = await reload()
  expect(stderr).toMatch(
    /^trellis: not reloaded, the file has faults; the earlier configuration stays in force:\n {2}1:1 listn: unknown key \(did you mean "listen"\?\)\n/,
  )
  expect([end, stdout]).toEqual([1, ''])
  expect((await fetch(`${gateway.publicAddress}/moved/x`)).status).toBe(502)
})

test('of settings that need a restart it names the keys', async () => {
  gateway.write({ ...first, workers: 3 })
  const { end, stderr } = await reload()
  expect(stderr).toBe(
    'trellis: not reloaded, these settings need a restart of the gateway; the earlier configuration stays in force:\n  workers\n',
  )
  expect(end).toBe(1)
  const { stdout } = await reload('--json')
  expect(JSON.parse(stdout)).toEqual({ outcome: 'restart-needed', keys: ['workers'] })
})

test('without a gateway it ends with 7', async () => {
  const { end, stderr } = await runCommand(['reload', '--admin', 'http://127.0.0.1:9'])
  expect([end, stderr]).toEqual([7, expect.stringContaining('trellis: ')])
})

test('a terminal gets colours, and nothing else does', async () => {
  const readInput = async () => 'listn: 1'
  let shown = ''
  const terminal = { write: (text: string) => (shown += text), hasColors: () => true }
  await runCommand(['start', '-c', '-'], { readInput, stderr: terminal })
  expect(shown).toContain('\u001b[31mlistn: unknown key')
  const piped = await runCommand(['start', '-c', '-'], { readInput })
  expect(piped.stderr).not.toContain('\u001b')
  await runCommand(['--help'], { stdout: terminal })
  expect(shown).toContain('\u001b[1mUsage:\u001b[22m')
  expect((await runCommand(['--help'])).stdout).not.toContain('\u001b')
})
