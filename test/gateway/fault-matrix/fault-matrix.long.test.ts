import { readdir, readFile, writeFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowsOf } from '../../support/breadth.ts'
import { allFaults } from './all-faults.ts'
import { asked, type Fault } from './fault.ts'
import { matrixDocument } from './matrix-document.ts'
import { buildMatrix, fits, isGood, isWrong, type Played } from './run-matrix.ts'
import { installNames } from './stage.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const heapMiB = (): number => {
  collect()
  return process.memoryUsage().heapUsed / 1024 / 1024
}

const openSockets = async (): Promise<number> => {
  const links = await readdir('/proc/self/fd', { withFileTypes: true }).catch(() => [])
  return links.filter((link) => link.isSymbolicLink()).length
}

/** More rows than these are not the fault of a busy machine. */
const maxReplays = 12

const removeNames = installNames()
const warnings: string[] = []
const onWarning = ({ name }: Error): void => void warnings.push(name)

/** What counts for each row: its first play, or a later one where a busy machine may have looked like a fault. */
let rows: readonly Played[]
/** Every play of every row. */
let plays: readonly Played[]
let replayed: number
let heaps: readonly number[]
let sockets: { readonly before: number; readonly after: number }
let gauges: readonly string[]
let stillResponds: number

beforeAll(async () => {
  process.on('warning', onWarning)
  const before = await openSockets()
  const matrix = await buildMatrix(allFaults)
  const all = [...allFaults.keys()]
  const first = await matrix.play(1, all, 16)
  const heap = heapMiB()
  const second = await matrix.play(2, rowsOf(all, 4), 16)
  heaps = [heap, heapMiB()]
  const differingIn = (played: readonly Played[]) =>
    all.filter((number) => !fits(allFaults[number] as Fault, played[number]))
  replayed = differingIn(first).length
  let latest = first
  let replays: readonly Played[] = []
  for (const round of [3, 4, 5, 6, 7, 8]) {
    const differing = differingIn(latest).slice(0, maxReplays)
    if (differing.length === 0) break
    const again = await matrix.play(round, differing, 3)
    latest = latest.map((played, number) => again[number] ?? played)
    replays = [...replays, ...Object.values(again)]
  }
  rows = latest
  plays = [...first, ...Object.values(second), ...replays]
  const metrics = await (await fetch(`${matrix.gateway.adminAddress}/metrics`)).text()
  gauges = metrics
    .split('\n')
    .filter((line) =>
      /^trellis_(in_flight|upstream_(in_flight|waiting|target_outstanding))_requests/.test(line),
    )
  stillResponds = (await fetch(`${matrix.gateway.publicAddress}/f0/`)).status
  await matrix.close()
  sockets = { before, after: await openSockets() }
}, 240_000)

afterAll(() => {
  process.off('warning', onWarning)
  removeNames()
})

describe.each(allFaults.map((fault, index) => ({ ...fault, index })))('$name', ({ seen, index }) => {
  const played = (): Played => rows[index] as Played

  test.each(asked.map((one, at) => [one, seen[at] as string] as const))('%s: %s', (one, expected) => {
    expect(expected.split('|')).toContain(played().seen[one])
  })
  test('stored responses are served during the fault', () => {
    expect(played().hits).toEqual([
      expect.objectContaining({ seen: '200', cacheStatus: expect.stringContaining('hit') }),
      expect.objectContaining({ seen: '200', cacheStatus: expect.stringContaining('hit') }),
    ])
  })
  test('after the fault, reads show the new state of the upstream', () => {
    expect(played().afterwards.filter((sight) => !isGood(sight))).toEqual([])
  })
  test('a read reached the upstream at most twice, a write at most once', () => {
    const counts = new Map<string, number>()
    for (const line of played().received) counts.set(line, (counts.get(line) ?? 0) + 1)
    const tooMany = [...counts].filter(([line, count]) => count > (line.startsWith('GET ') ? 2 : 1))
    expect(tooMany).toEqual([])
  })
})

test('there are at least 48 faults', () => {
  expect(allFaults.length).toBeGreaterThanOrEqual(48)
  expect(new Set(allFaults.map(({ name }) => name)).size).toBe(allFaults.length)
})

test('in every play stored responses were served, and nothing of a fault was stored', () => {
  expect(plays.length).toBeGreaterThan(1.2 * allFaults.length)
  const missed = plays.flatMap(({ hits }) => hits.filter(({ cacheStatus }) => !cacheStatus.includes('hit')))
  expect([missed, plays.flatMap(({ afterwards }) => afterwards.filter(isWrong))]).toEqual([[], []])
  expect(replayed).toBeLessThanOrEqual(maxReplays)
})

test('no sockets, slots, listeners or memory are left over', () => {
  expect(gauges.length).toBeGreaterThan(allFaults.length)
  expect(gauges.filter((line) => !line.endsWith(' 0') && !line.startsWith('trellis_in_flight'))).toEqual([])
  expect(sockets.after).toBeLessThanOrEqual(sockets.before + 2)
  expect(warnings).toEqual([])
  const [first = 0, second = 0] = heaps
  expect(second - first).toBeLessThan(8)
})

test('the gateway still answers', () => {
  expect(stillResponds).toBe(200)
})

test('docs/evidence/fault-matrix.md shows these rows', async () => {
  const file = 'docs/evidence/fault-matrix.md'
  if (process.env['UPDATE_DOCS'] !== undefined) await writeFile(file, matrixDocument())
  expect(await readFile(file, 'utf8')).toBe(matrixDocument())
})
