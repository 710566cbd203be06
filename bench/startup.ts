import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { startGatewayProcess } from '../test/support/gateway-process.ts'
import { checkCommandLine } from './command-line.ts'
import { processorSeconds } from './processor-time.ts'
import { median } from './statistics.ts'

// npm run bench:startup: processor time, user and system together, of a start until /readyz answers, and of the commands that start
// no gateway. Medians; BENCH_ROUNDS for more of them. The demo also starts two upstreams in the same process, and learns their routes.
checkCommandLine('npm run bench:startup (BENCH_ROUNDS: starts of each)')
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 5)

/** Nothing listens there: a start sends no request to it. */
const openService = { contract: 'open', mount: '/', upstream: { targets: ['http://127.0.0.1:9'] } }

const startSeconds = async (settings: Record<string, unknown>): Promise<number> => {
  const gateway = await startGatewayProcess(settings)
  const seconds = processorSeconds(gateway.program.pid)
  await gateway.stop()
  return seconds
}

const commandSeconds = async (...args: readonly string[]): Promise<number> => {
  // `times` of a shell: its own processor time, then that of its children that have ended.
  const shell = spawn('/bin/sh', [
    '-c',
    '"$@" >/dev/null; times',
    'sh',
    process.execPath,
    'dist/main.js',
    ...args,
  ])
  let text = ''
  shell.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  await once(shell, 'close')
  const [, children = ''] = text.split('\n')
  return [...children.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds),
    0,
  )
}

const measured = async (title: string, measure: () => Promise<number>): Promise<void> => {
  const seconds: number[] = []
  for (let round = 0; round < rounds; round += 1) seconds.push(await measure())
  console.log(`${title.padEnd(36)} ${median(seconds).toFixed(2)} s`)
}

await measured('start with one open service', () => startSeconds({ services: { open: openService } }))
await measured('start with the demo', () => startSeconds({}))
await measured('check -c config/gateway.yaml', () => commandSeconds('check', '-c', 'config/gateway.yaml'))
await measured('schema', () => commandSeconds('schema'))
await measured('--help', () => commandSeconds('--help'))
