import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pause } from '../../support/origin.ts'
import { freePort } from '../../support/ports.ts'
import { type RunningProcess, startProcess } from '../../support/processes.ts'

/** A real redis-server that a test starts, stops, kills and empties. */
export type RedisServer = {
  readonly port: number
  /** On which nodes of a cluster talk to each other. */
  readonly busPort: number
  /** Ends it at once and starts another one on the same port, after a time or when something has come about: its data is gone. */
  restartEmpty(down: number | (() => Promise<unknown>)): Promise<void>
  signal(name: 'SIGSTOP' | 'SIGCONT'): void
  /** One command, its raw answer. */
  command(...words: readonly string[]): Promise<string>
  stop(): Promise<void>
}

const responses = (port: number, words: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`)
    socket.once('error', reject)
    socket.once('data', (chunk) => {
      resolve(chunk.toString())
      socket.destroy()
    })
    socket.write(`*${words.length}\r\n${parts.join('')}`)
  })

/** Starts one without files, on a free port. */
export const startRedisServer = async (...settings: readonly string[]): Promise<RedisServer> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-redis-'))
  const [port, busPort] = [await freePort(), await freePort()]
  // By default it is 10,000 above the other one, where there may be no port.
  const bus = settings.includes('--cluster-enabled') ? ['--cluster-port', String(busPort)] : []
  let program: RunningProcess
  const start = async (): Promise<void> => {
    program = startProcess('redis-server', [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no'],
      ...bus,
      ...settings,
    ])
    for (let tries = 0; tries < 400; tries += 1) {
      const pong = await responses(port, ['PING']).catch(() => '')
      if (pong.startsWith('+PONG')) return
      await pause(25)
    }
    throw new Error(`redis-server does not answer:\n${program.output()}`)
  }
  await start()
  return {
    port,
    busPort,
    restartEmpty: async (down) => {
      await program.stop(0)
      await (typeof down === 'number' ? pause(down) : down())
      await start()
    },
    signal: (name) => process.kill(-program.pid, name),
    command: (...words) => responses(port, words),
    stop: async () => {
      await program.stop(1000)
      await rm(folder, { recursive: true, force: true })
    },
  }
}
