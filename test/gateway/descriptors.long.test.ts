import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { builtGateway } from '../support/built-gateway.ts'
import { pause } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'

const responses = async (url: string): Promise<number> => {
  const response = await fetch(url).catch(() => undefined)
  await response?.arrayBuffer()
  return response?.status ?? 0
}

// Fewer do not suffice to start: modules are read many at a time.
test('a client that uses up all descriptors blocks others meanwhile, but does not end the gateway', async () => {
  const main = await builtGateway()
  const folder = await mkdtemp(join(tmpdir(), 'trellis-descriptors-'))
  const [port, admin] = [await freePort(), await freePort()]
  const file = join(folder, 'gateway.yaml')
  const config = {
    listen: { port },
    admin: { port: admin },
    log: { level: 'silent' },
    drain: { delay: '0s', timeout: '1s' },
    overload: { interval: '100ms' },
    services: { plants: { contract: 'plants', mount: '/', upstream: { targets: ['embedded'] } } },
  }
  await writeFile(file, JSON.stringify(config))
  const program = spawn(
    'sh',
    ['-c', 'ulimit -n 256 && exec "$0" "$@"', process.execPath, main, 'start', '-c', file],
    { stdio: 'ignore' },
  )
  const ended = once(program, 'close')
  const sockets: Socket[] = []
  try {
    const plants = `http://127.0.0.1:${port}/plants`
    await expect.poll(() => responses(plants), { timeout: 60_000 }).toBe(401)
    for (let i = 0; i < 400; i += 1) {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      sockets.push(socket)
    }
    await expect.poll(() => responses(plants)).toBe(0)
    await pause(1_000)
    for (const socket of sockets) socket.destroy()
    await expect.poll(() => responses(plants)).toBe(401)
    expect(program.exitCode).toBeNull()
    program.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  } finally {
    for (const socket of sockets) socket.destroy()
    program.kill('SIGKILL')
  }
}, 180_000)
