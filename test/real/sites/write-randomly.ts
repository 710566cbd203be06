import { confirmPushes } from '../companion/keep.ts'
import { createRandom } from '../promise-fuzz/random.ts'
import { type Core, pluginsOf } from './archives.ts'
import { chooseCompared } from './choose-compared.ts'
import { hitsAmong, type MeasuredSite, openSite, staleAmong, storeAll } from './measure.ts'
import { randomWrites } from './random-writes.ts'
import type { SiteWrite } from './writes.ts'

type RandomRun = {
  readonly set: string
  readonly withCompanion: boolean
  readonly writes: number
  readonly seed: number
  readonly core?: Core
  tell(line: string): void
}

/** How often a kind of write was sent, and the sum of the shares that it left. */
export type LeftByKind = Readonly<Record<string, { readonly writes: number; readonly left: number }>>

export type RandomResult = {
  readonly writes: number
  readonly refused: number
  readonly bypassing: number
  readonly compared: number
  readonly kinds: LeftByKind
  readonly older: readonly string[]
}

const root = '/index.php/wp-json'

/** Sends a write, and waits until the gateway has been told of one that went past it. Says whether it was carried out. */
const send = async (
  { site, gateway }: MeasuredSite,
  { name, method, path, body }: SiteWrite,
  isBypassing: boolean,
  tell: RandomRun['tell'],
): Promise<boolean> => {
  const reported = site.intake.pushes.length
  const response = await site.rest(method, path, body, isBypassing ? undefined : gateway.publicAddress)
  const text = await response.text()
  if (!response.ok && process.env['TRELLIS_VERBOSE'] !== undefined)
    tell(`${name}: ${response.status} ${text.slice(0, 200)}`)
  if (isBypassing) await confirmPushes(gateway, site.intake.pushes.slice(reported))
  return response.ok
}

/** Does the stored response differ from a new one through the same gateway? Some differ from WordPress's own for other reasons. */
const isOlder = async ({ gateway }: MeasuredSite, path: string): Promise<boolean> => {
  const url = `${gateway.publicAddress}${root}${path}`
  const stored = await (await fetch(url)).text()
  const purged = await fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  })
  await purged.arrayBuffer()
  return stored !== (await (await fetch(url)).text())
}

/** Share of what was stored that a write left, in the mean. */
export const meanShareLeft = ({ writes, kinds }: Pick<RandomResult, 'writes' | 'kinds'>): number =>
  Object.values(kinds).reduce((sum, { left }) => sum + left, 0) / writes

type Shares = Record<string, { writes: number; left: number }>

const shareOf = (shares: Shares, kind: string) => {
  const share = shares[kind] ?? { writes: 0, left: 0 }
  shares[kind] = share
  return share
}

/** Several runs as one. */
export const togetherOf = (runs: readonly RandomResult[]): RandomResult => {
  const kinds: Shares = {}
  for (const run of runs)
    for (const [kind, { writes, left }] of Object.entries(run.kinds)) {
      const sum = shareOf(kinds, kind)
      sum.writes += writes
      sum.left += left
    }
  const sumOf = (member: 'writes' | 'refused' | 'bypassing' | 'compared'): number =>
    runs.reduce((sum, run) => sum + run[member], 0)
  return {
    writes: sumOf('writes'),
    refused: sumOf('refused'),
    bypassing: sumOf('bypassing'),
    compared: sumOf('compared'),
    kinds,
    older: runs.flatMap(({ older }) => older),
  }
}

const describeDropped = (
  { site }: MeasuredSite,
  { name }: SiteWrite,
  stored: readonly string[],
  hits: ReadonlyMap<string, string>,
  reportedBefore: number,
): string => {
  const changes = site.intake.pushes.slice(reportedBefore).flatMap((push) => push.changes)
  const dropped = stored.filter((path) => !hits.has(path))
  return `${name} dropped ${dropped.length} of ${stored.length}: ${dropped.join(' ')}; reported: ${JSON.stringify(changes)}`
}

/** After this many writes every response that is left is compared; COMPARE=all: after each. */
const writesBetween = process.env['COMPARE'] === 'all' ? 1 : 10

/** Random writes through the gateway and, where the companion reports them, past it; what they leave is compared with WordPress. */
export const writeRandomly = async (run: RandomRun): Promise<RandomResult> => {
  const measured = await openSite(run.set, run.withCompanion, run.core)
  const random = createRandom(run.seed)
  // Draws that depend on what is left must not change the writes of the seed.
  const drawing = createRandom(run.seed)
  const kinds = randomWrites(measured.ids, pluginsOf(run.set))
  const older: string[] = []
  const shares: Shares = {}
  let [refused, bypassing, compared] = [0, 0, 0]
  const compare = async (nth: number, write: SiteWrite, hits: ReadonlyMap<string, string>): Promise<void> => {
    const comparesAll = (nth + 1) % writesBetween === 0 || nth + 1 === run.writes
    const chosen = comparesAll ? hits : chooseCompared(hits, write, drawing)
    compared += chosen.size
    for (const path of await staleAmong(measured, chosen)) {
      if (!(await isOlder(measured, path))) continue
      const told = `seed ${run.seed}, at write ${nth} or one before it (COMPARE=all): ${JSON.stringify(write)}: ${path}`
      older.push(told)
      run.tell(`OLDER, ${told}`)
    }
  }
  const one = async (nth: number): Promise<void> => {
    const stored = await storeAll(measured, measured.paths, 4)
    const write = random.pick(kinds)(random)
    const isBypassing = run.withCompanion && random.chance(0.5)
    const reported = measured.site.intake.pushes.length
    bypassing += Number(isBypassing)
    refused += Number(!(await send(measured, write, isBypassing, run.tell)))
    const hits = await hitsAmong(measured, stored)
    const share = shareOf(shares, write.name)
    share.writes += 1
    share.left += stored.length === 0 ? 0 : hits.size / stored.length
    if (process.env['SHOW_DROPPED'] === '1')
      run.tell(describeDropped(measured, write, stored, hits, reported))
    await compare(nth, write, hits)
  }
  try {
    for (let nth = 0; nth < run.writes; nth += 1) await one(nth)
    return { writes: run.writes, refused, bypassing, compared, kinds: shares, older }
  } finally {
    await measured.stop()
  }
}
