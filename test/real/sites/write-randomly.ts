import { confirmPushes } from '../companion/keep.ts'
import { createRandom } from '../promise-fuzz/random.ts'
import { type Core, pluginsOf } from './archives.ts'
import { compareStored, type MeasuredSite, openSite, storeAll } from './measure.ts'
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

/** Random writes through the gateway and, where the companion reports them, past it; every response that is left is compared. */
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

export const writeRandomly = async (run: RandomRun): Promise<RandomResult> => {
  const measured = await openSite(run.set, run.withCompanion, run.core)
  const random = createRandom(run.seed)
  const kinds = randomWrites(measured.ids, pluginsOf(run.set))
  const older: string[] = []
  const shares: Shares = {}
  let [refused, bypassing, compared] = [0, 0, 0]
  const one = async (nth: number): Promise<void> => {
    const stored = await storeAll(measured, measured.paths, 4)
    const write = random.pick(kinds)(random)
    const isBypassing = run.withCompanion && random.chance(0.5)
    const reported = measured.site.intake.pushes.length
    bypassing += Number(isBypassing)
    refused += Number(!(await send(measured, write, isBypassing, run.tell)))
    const result = await compareStored(measured, stored)
    compared += result.left
    const share = shareOf(shares, write.name)
    share.writes += 1
    share.left += stored.length === 0 ? 0 : result.left / stored.length
    if (process.env['SHOW_DROPPED'] === '1') {
      const changes = measured.site.intake.pushes.slice(reported).flatMap((push) => push.changes)
      run.tell(
        `${write.name} dropped ${result.dropped.length} of ${stored.length}: ${result.dropped.join(' ')}; reported: ${JSON.stringify(changes)}`,
      )
    }
    for (const path of result.stale) {
      if (!(await isOlder(measured, path))) continue
      const told = `seed ${run.seed}, write ${nth}${isBypassing ? ' past the gateway' : ''}: ${JSON.stringify(write)}: ${path}`
      older.push(told)
      run.tell(`OLDER, ${told}`)
    }
  }
  try {
    for (let nth = 0; nth < run.writes; nth += 1) await one(nth)
    return { writes: run.writes, refused, bypassing, compared, kinds: shares, older }
  } finally {
    await measured.stop()
  }
}
