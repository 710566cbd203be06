import { execFile, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { ScenarioFacts } from './scenarios.ts'

/** What a generator reports of one round. */
export type Load = {
  readonly requests: number
  readonly seconds: number
  /** Responses that were not 2xx or 3xx, and sockets that failed. */
  readonly failures: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** What is to be sent. */
export type Order = {
  readonly url: string
  readonly seconds: number
  /** Lines `Name: value`. */
  readonly headers: readonly string[]
  /** A program of bench/wrk with its arguments. */
  readonly script: { readonly name: string; readonly args: readonly string[] } | undefined
  readonly over?: ScenarioFacts['over']
}

export type Generator = {
  readonly name: string
  readonly runsScripts: boolean
  run(order: Order): Promise<Load>
}

const connections = 32
const execute = promisify(execFile)

/** wrk where it is installed (Debian package wrk), otherwise a plain one on undici. Both run on the given core. */
export function chooseGenerator(pinned: (command: readonly string[]) => readonly string[]): Generator {
  const isWrkThere = spawnSync('sh', ['-c', 'command -v wrk']).status === 0
  return isWrkThere ? wrk(pinned) : bundled(pinned)
}

function wrk(pinned: (command: readonly string[]) => readonly string[]): Generator {
  return {
    name: 'wrk',
    runsScripts: true,
    async run({ url, seconds, headers, script, over }) {
      if (over === 'h2') return overHttp2(pinned, { url, seconds, headers })
      const program =
        script === undefined ? [] : ['-s', fileURLToPath(new URL(`wrk/${script.name}`, import.meta.url))]
      const [command = '', ...args] = pinned([
        ...['wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '--timeout', '10s'],
        ...headers.flatMap((line) => ['-H', line]),
        ...program,
        url,
        ...(script === undefined ? [] : ['--', ...script.args]),
      ])
      return parseWrk((await execute(command, args)).stdout)
    },
  }
}

const streams = 4

/** h2load (Debian package nghttp2-client): as many requests at once as wrk, on a quarter of the connections. It reports no percentiles. */
async function overHttp2(
  pinned: (command: readonly string[]) => readonly string[],
  { url, seconds, headers }: Pick<Order, 'url' | 'seconds' | 'headers'>,
): Promise<Load> {
  const [command = '', ...args] = pinned([
    ...['h2load', '-t1', `-c${connections / streams}`, `-m${streams}`, `-D${seconds}`],
    ...headers.flatMap((line) => ['-H', line]),
    url,
  ])
  return parseH2load((await execute(command, args)).stdout, seconds)
}

/** What h2load has printed of so many seconds. */
export function parseH2load(text: string, seconds: number): Load {
  const done = /requests: .* (\d+) done, .* (\d+) failed, (\d+) errored/.exec(text)
  const codes = /status codes: \d+ 2xx, \d+ 3xx, (\d+) 4xx, (\d+) 5xx/.exec(text)
  const failed = [done?.[2], codes?.[1], codes?.[2]].reduce((sum, count) => sum + Number(count ?? 0), 0)
  return {
    requests: Number(done?.[1] ?? 0),
    seconds,
    failures: failed,
    p50Ms: Number.NaN,
    p99Ms: Number.NaN,
  }
}

/** What wrk has printed with --latency. */
export function parseWrk(text: string): Load {
  const total = /(\d+) requests in ([\d.]+)(ms|s|m)\b/.exec(text)
  const sockets = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text)
  const refused = /Non-2xx or 3xx responses: (\d+)/.exec(text)
  const socketFailures =
    sockets === null ? 0 : sockets.slice(1).reduce((sum, count) => sum + Number(count), 0)
  return {
    requests: Number(total?.[1] ?? 0),
    seconds: milliseconds(total?.[2], total?.[3]) / 1000,
    failures: socketFailures + Number(refused?.[1] ?? 0),
    p50Ms: percentile(text, 50),
    p99Ms: percentile(text, 99),
  }
}

function percentile(text: string, which: number): number {
  const found = new RegExp(`^ +${which}% +([\\d.]+)(us|ms|s|m)`, 'm').exec(text)
  return milliseconds(found?.[1], found?.[2])
}

function milliseconds(number: string | undefined, unit: string | undefined): number {
  const factors: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000 }
  return Number(number ?? Number.NaN) * (factors[unit ?? ''] ?? Number.NaN)
}

function bundled(pinned: (command: readonly string[]) => readonly string[]): Generator {
  const run = fileURLToPath(new URL('./run.ts', import.meta.url))
  return {
    name: 'bundled generator (install wrk for steadier numbers and all scenarios)',
    runsScripts: false,
    async run({ url, seconds, headers }) {
      const [command = '', ...args] = pinned([
        ...[process.execPath, '--import', 'tsx', run, 'generate', url],
        ...[String(seconds), String(connections), ...headers],
      ])
      return JSON.parse((await execute(command, args)).stdout) as Load
    },
  }
}
