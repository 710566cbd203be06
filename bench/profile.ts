import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { SourceMap } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { measure, probe, startPeer, startWorld, warmUp } from './measure.ts'
import { trellis } from './peers/trellis.ts'
import type { Scenario } from './scenarios.ts'

/** A share of the processor time of the main thread, by whose code it was. */
type ProfileGroup = { readonly name: string; readonly share: number }

type Frame = {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}
type Profile = {
  readonly nodes: readonly { readonly id: number; readonly callFrame: Frame }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const systemCalls = new Set(['writeLatin1String', 'writev', 'writeUtf8String', 'writeBuffer', 'readStart'])

/** By whose code a frame is grouped: a folder of src, a package, a part of Node, the kernel by way of a write, the collector. */
const ownerOf = ({ functionName, url }: Frame, source: string): string => {
  if (functionName === '(garbage collector)') return 'garbage collector'
  if (functionName === '(program)') return 'V8 and libuv outside JavaScript'
  if (systemCalls.has(functionName)) return 'writing to the socket (system call)'
  const package_ = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]
  if (package_ !== undefined) return package_
  if (url.startsWith('node:')) return url.includes('http') ? 'node:http' : 'the rest of Node'
  const folder = /(?:^|\/)(?:src|dist)\/([^/]+?)(?:\.[jt]s)?(?:\/|$)/.exec(source)?.[1]
  return folder === undefined ? 'the rest of Node' : `Trellis: ${folder}`
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

/** Self times of the last `lastMs` of the profile in a folder, without what was idle, largest first. */
const readProfile = async (
  folder: string,
  lastMs: number,
  nameOf: typeof ownerOf,
): Promise<readonly ProfileGroup[]> => {
  const file = (await readdir(folder)).find((name) => name.endsWith('.cpuprofile'))
  if (file === undefined) throw new Error('the profiler wrote nothing')
  const { nodes, samples, timeDeltas } = JSON.parse(await readFile(join(folder, file), 'utf8')) as Profile
  const urls = [...new Set(nodes.map(({ callFrame }) => callFrame.url))]
  const maps = new Map(await Promise.all(urls.map(async (url) => [url, await readMap(url)] as const)))
  const names = new Map<number, string>()
  for (const { id, callFrame } of nodes) {
    if (callFrame.functionName !== '(idle)')
      names.set(id, nameOf(...originalFrame(callFrame, maps.get(callFrame.url))))
  }
  const times = new Map<string, number>()
  let busy = 0
  let left = lastMs * 1000
  for (let i = samples.length - 1; i >= 0 && left > 0; i -= 1) {
    const name = names.get(samples[i] as number)
    const took = timeDeltas[i] as number
    left -= took
    if (name === undefined) continue
    busy += took
    times.set(name, (times.get(name) ?? 0) + took)
  }
  return [...times].map(([name, took]) => ({ name, share: took / busy })).sort((a, b) => b.share - a.share)
}

/** Prints where the processor time of one scenario goes: by owner, and its sixty costliest functions. */
export async function benchProfile(scenario: Scenario): Promise<void> {
  const { generator, originPort, serverPin, origin } = await startWorld()
  const folder = await mkdtemp(join(tmpdir(), 'trellis-profile-'))
  process.env['BENCH_PROFILE'] = folder
  try {
    const started = await startPeer(trellis, { originPort, answers: [], pin: serverPin })
    await probe(started, scenario)
    await warmUp(started, scenario, generator, { requests: 30_000, seconds: 10 })
    const from = performance.now()
    await measure(started, scenario, generator, 5)
    const lasted = performance.now() - from
    await started.stop()
    const owners = await readProfile(folder, lasted, ownerOf)
    const functions = await readProfile(folder, lasted, functionOf)
    for (const groups of [owners, functions.slice(0, 60)]) {
      for (const { name, share } of groups) console.log(`${(share * 100).toFixed(1).padStart(5)} %  ${name}`)
      console.log('')
    }
  } finally {
    await origin.stop(0)
    await rm(folder, { recursive: true, force: true })
  }
}
