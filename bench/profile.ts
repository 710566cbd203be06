import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A share of the processor time of the main thread, by whose code it was. */
export type ProfileGroup = { readonly name: string; readonly share: number }

type Node = {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string }
}
type Profile = {
  readonly nodes: readonly Node[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const systemCalls = new Set(['writeLatin1String', 'writev', 'writeUtf8String', 'writeBuffer', 'readStart'])

/** Whose code a frame is: a room of Trellis, a package, a part of Node, the kernel by way of a write, the collector. */
function groupOf({ callFrame: { functionName, url } }: Node): string {
  if (functionName === '(garbage collector)') return 'garbage collector'
  if (functionName === '(program)') return 'V8 and libuv outside JavaScript'
  if (systemCalls.has(functionName)) return 'writing to the socket (system call)'
  const package_ = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
  if (package_ !== undefined) return package_
  if (url.startsWith('node:')) return url.includes('http') ? 'node:http' : 'the rest of Node'
  const room = /\/dist\/([^/]+?)(?:\.js)?(?:\/|$)/.exec(url)?.[1]
  return room === undefined ? 'the rest of Node' : `Trellis: ${room}`
}

/** Self times of the last `lastMs` of the profile in a folder, without what was idle, largest first. */
export async function profileGroups(folder: string, lastMs: number): Promise<readonly ProfileGroup[]> {
  const file = (await readdir(folder)).find((name) => name.endsWith('.cpuprofile'))
  if (file === undefined) throw new Error('the profiler wrote nothing')
  const { nodes, samples, timeDeltas } = JSON.parse(await readFile(join(folder, file), 'utf8')) as Profile
  const groups = new Map(nodes.map((node) => [node.id, node]))
  const times = new Map<string, number>()
  let busy = 0
  let left = lastMs * 1000
  for (let i = samples.length - 1; i >= 0 && left > 0; i -= 1) {
    const node = groups.get(samples[i] as number)
    const took = timeDeltas[i] as number
    left -= took
    if (node === undefined || node.callFrame.functionName === '(idle)') continue
    busy += took
    const name = groupOf(node)
    times.set(name, (times.get(name) ?? 0) + took)
  }
  return [...times].map(([name, took]) => ({ name, share: took / busy })).sort((a, b) => b.share - a.share)
}
