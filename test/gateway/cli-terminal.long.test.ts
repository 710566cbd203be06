import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { builtGateway } from '../support/built-gateway.ts'
import { freePort } from '../support/ports.ts'

let main: string
let folder: string
beforeAll(async () => {
  main = await builtGateway()
  folder = await mkdtemp(join(tmpdir(), 'trellis-terminal-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** Runs the program on a terminal, which `script` of util-linux makes. */
const onTerminal = (words: string, env: Readonly<Record<string, string>> = {}) => {
  const program = spawn('script', ['-qec', `${process.execPath} ${main} ${words}`, '/dev/null'], {
    env: { PATH: process.env['PATH'], TERM: 'xterm-256color', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  program.stdout.on('data', (chunk) => {
    text += chunk
  })
  return { ended: once(program, 'close'), text: () => text }
}

const escapeCode = '\u001b'

test('a terminal shows faults in colour, unless NO_COLOR is set', async () => {
  const file = join(folder, 'faulty.yaml')
  await writeFile(file, 'listn: 1\n')
  const colored = onTerminal(`check ${file}`)
  await colored.ended
  expect(colored.text()).toContain(`${escapeCode}[31mlistn: unknown key`)
  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
    const plain = onTerminal(`check ${file}`, env)
    await plain.ended
    expect(plain.text()).toContain('faulty.yaml:1:1 listn: unknown key')
    expect(plain.text()).not.toContain(escapeCode)
  }
})

test('on a terminal the log of a gateway is text', async () => {
  const [port, admin] = [await freePort(), await freePort()]
  const file = join(folder, 'trellis.yaml')
  const api = { contract: 'open', mount: '/', upstream: { targets: ['http://127.0.0.1:9'] } }
  const config = { listen: { port }, admin: { port: admin }, drain: { delay: '0s' }, services: { api } }
  await writeFile(file, JSON.stringify(config))
  const gateway = onTerminal(`start -c ${file}`, { NO_COLOR: '1' })
  await expect.poll(gateway.text, { timeout: 60_000 }).toContain('Trellis listens on')
  await expect.poll(gateway.text).toMatch(/^\[[\d:.]+\] INFO: .*admin side listens on/m)
  const drain = { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } }
  expect((await fetch(`http://127.0.0.1:${admin}/drain`, drain)).status).toBe(202)
  expect(await gateway.ended).toEqual([0, null])
  expect(gateway.text()).not.toMatch(/^\{/m)
  expect(gateway.text()).not.toContain(escapeCode)
})
