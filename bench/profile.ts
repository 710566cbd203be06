import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { SourceMap } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { longWarmUp, measure, type RunningPeer, warmUp } from './measure.ts'
import { withBoth } from './pairs.ts'
import { mainThreadSeconds } from './processor-time.ts'
import { factsOf, type Scenario } from './scenarios.ts'
import { inTurns } from './turns.ts'

type Frame = {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}
/** Times in microseconds; `startTime` by the monotonic clock. */
type Profile = {
  readonly nodes: readonly { readonly id: number; readonly callFrame: Frame }[]
  readonly samples: readonly number[]
  readonly startTime: number
  readonly timeDeltas: readonly number[]
}

/** A turn under the profiler. Times as in the profile. */
type Turn = {
  readonly pid: number
  readonly from: number
  readonly to: number
  readonly requests: number
  readonly mainSeconds: number
  readonly allSeconds: number
}

/** Microseconds a request by name. */
type Costs = ReadonlyMap<string, number>

const systemCalls = new Set(['writeLatin1String', 'writev', 'writeUtf8String', 'writeBuffer', 'readStart'])

/** Of the table, in its order. `other threads` is what the collector and the compiler do beside the main thread, with the profiler's own. */
const parts = [
  ...['socket writes', 'outside JavaScript', 'node:http', 'rest of Node', 'undici', 'other packages'],
  ...[
    'collector',
    'cache',
    'service',
    'wordpress',
    'openapi',
    'upstream',
    'exchange',
    'rest of Trellis',
    'other threads',
  ],
] as const

const ownFolders: ReadonlySet<string> = new Set([
  'cache',
  'service',
  'wordpress',
  'openapi',
  'upstream',
  'exchange',
])

/** By whose code a frame is counted: a folder of src, a package, a part of Node, the kernel by way of a write, the collector. */
export const partOf = ({ functionName, url }: Frame, source: string): (typeof parts)[number] => {
  if (functionName === '(garbage collector)') return 'collector'
  if (functionName === '(program)') return 'outside JavaScript'
  if (systemCalls.has(functionName)) return 'socket writes'
  const package_ = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]
  if (package_ !== undefined) return package_ === 'undici' ? 'undici' : 'other packages'
  // The parser of undici.
  if (url.startsWith('wasm:')) return 'undici'
  if (url.startsWith('node:')) return url.includes('http') ? 'node:http' : 'rest of Node'
  const folder = /(?:^|\/)(?:src|dist)\/([^/]+?)(?:\.[jt]s)?(?:\/|$)/.exec(source)?.[1]
  if (folder !== undefined)
    return ownFolders.has(folder) ? (folder as (typeof parts)[number]) : 'rest of Trellis'
  // A peer's own few lines.
  return source.includes('/bench/') ? 'rest of Trellis' : 'rest of Node'
}

/** The function, with the last part of its path. */
const functionOf = ({ functionName, lineNumber }: Frame, source: string): string =>
  `${functionName === '' ? '(anonymous)' : functionName} ${source.replace(/^(?:\.\.\/)+/, '')}:${lineNumber + 1}`

/** A bundle has one file for hundreds of modules: its source map tells from which of them a frame comes. */
const readMap = async (url: string): Promise<SourceMap | undefined> => {
  if (!url.startsWith('file:')) return undefined
  const text = await readFile(`${fileURLToPath(url)}.map`, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : new SourceMap(JSON.parse(text))
}

const originalFrame = (frame: Frame, map: SourceMap | undefined): readonly [Frame, string] => {
  const found = map?.findEntry(frame.lineNumber, frame.columnNumber)
  if (found === undefined || !('originalSource' in found)) return [frame, frame.url]
  return [{ ...frame, lineNumber: found.originalLine }, found.originalSource]
}

/** Self times during some turns, without what was idle, largest first. They share the processor time that the main thread used. */
export const readCosts = async (
  { nodes, samples, startTime, timeDeltas }: Profile,
  turns: readonly Turn[],
  nameOf: typeof partOf | typeof functionOf,
): Promise<Costs> => {
  const urls = [...new Set(nodes.map(({ callFrame }) => callFrame.url))]
  const maps = new Map(await Promise.all(urls.map(async (url) => [url, await readMap(url)] as const)))
  const names = new Map<number, string>()
  for (const { id, callFrame } of nodes) {
    if (callFrame.functionName !== '(idle)')
      names.set(id, nameOf(...originalFrame(callFrame, maps.get(callFrame.url))))
  }
  const counts = new Map<string, number>()
  let busy = 0
  let at = startTime
  samples.forEach((sample, i) => {
    at += timeDeltas[i] as number
    const name = names.get(sample)
    if (name === undefined || !turns.some(({ from, to }) => at >= from && at <= to)) return
    busy += 1
    counts.set(name, (counts.get(name) ?? 0) + 1)
  })
  const requests = turns.reduce((sum, turn) => sum + turn.requests, 0)
  const seconds = turns.reduce((sum, turn) => sum + turn.mainSeconds, 0)
  const ofOne = (seconds * 1e6) / requests / busy
  const sorted = [...counts].sort(([, a], [, b]) => b - a)
  return new Map(sorted.map(([name, count]) => [name, count * ofOne]))
}

/** The profile of the main thread of a process. */
const profileOf = async (folder: string, pid: number): Promise<Profile> => {
  const file = (await readdir(folder)).find((name) => name.includes(`.${pid}.0.`))
  if (file === undefined) throw new Error('the profiler wrote nothing')
  return JSON.parse(await readFile(join(folder, file), 'utf8'))
}

const timed = async (
  peer: RunningPeer,
  work: () => Promise<{ readonly requests: number }>,
): Promise<Turn> => {
  const now = (): number => Number(process.hrtime.bigint() / 1000n)
  const [from, main, all] = [now(), mainThreadSeconds(peer.pid), peer.processorSeconds()]
  const { requests } = await work()
  const mainSeconds = mainThreadSeconds(peer.pid) - main
  return {
    pid: peer.pid,
    from,
    to: now(),
    requests,
    mainSeconds,
    allSeconds: peer.processorSeconds() - all,
  }
}

const otherThreads = (turns: readonly Turn[]): number =>
  turns.reduce((sum, { allSeconds, mainSeconds }) => sum + allSeconds - mainSeconds, 0) /
  turns.reduce((sum, { requests }) => sum + requests, 0)

const row = (title: string, costs: Costs, others: number): string => {
  const all = [...costs.values()].reduce((sum, cost) => sum + cost, others)
  const cells = parts.map((part) => (part === 'other threads' ? others : costs.get(part)) ?? 0)
  return `|${[title, ...[all, ...cells].map((cost) => (cost < 0.05 ? '–' : cost.toFixed(1)))].join('|')}|`
}

/**
 * Prints where the processor time of requests goes, microseconds a request by part, for this build and the server that the goal of the
 * scenario names, in turns of a second; of a single scenario also the sixty costliest functions of this build. The profiler makes
 * both slower.
 */
export async function benchProfile(named = 'hit', pairs = 5): Promise<void> {
  const chosen = named.split(',').map((name) => factsOf(name as Scenario))
  console.log(`|µs|all|${parts.join('|')}|\n|---|${'---|'.repeat(parts.length + 1)}`)
  for (const { name, yardstick } of chosen) {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-profile-'))
    process.env['BENCH_PROFILE'] = folder
    try {
      let turns: readonly (readonly [Turn, Turn])[] = []
      await withBoth(yardstick, name, async ({ mine, theirs, generator }) => {
        for (const peer of [mine, theirs]) await warmUp(peer, name, generator, longWarmUp)
        turns = await inTurns(mine, theirs, pairs, (peer) =>
          timed(peer, () => measure(peer, name, generator, 1)),
        )
      })
      for (const side of [0, 1] as const) {
        const own = turns.map((pair) => pair[side])
        const profile = await profileOf(folder, own[0]?.pid ?? 0)
        console.log(
          row(side === 0 ? name : yardstick, await readCosts(profile, own, partOf), otherThreads(own) * 1e6),
        )
        if (side === 1 || chosen.length > 1) continue
        const functions = [...(await readCosts(profile, own, functionOf))].slice(0, 60)
        console.log(functions.map(([of, cost]) => `${cost.toFixed(2).padStart(6)} µs  ${of}`).join('\n'))
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
}
