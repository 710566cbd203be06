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

export type RandomResult = {
  readonly refused: number
  readonly bypassing: number
  readonly compared: number
  /** Share of what was stored that a write left, in the mean. */
  readonly left: number
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
export const writeRandomly = async (run: RandomRun): Promise<RandomResult> => {
  const measured = await openSite(run.set, run.withCompanion, run.core)
  const random = createRandom(run.seed)
  const kinds = randomWrites(measured.ids, pluginsOf(run.set))
  const older: string[] = []
  let [refused, bypassing, compared, left] = [0, 0, 0, 0]
  const one = async (nth: number): Promise<void> => {
    const stored = await storeAll(measured, measured.paths, 4)
    const write = random.pick(kinds)(random)
    const isBypassing = run.withCompanion && random.chance(0.5)
    bypassing += Number(isBypassing)
    refused += Number(!(await send(measured, write, isBypassing, run.tell)))
    const result = await compareStored(measured, stored)
    compared += result.left
    left += stored.length === 0 ? 0 : result.left / stored.length
    for (const path of result.stale) {
      if (!(await isOlder(measured, path))) continue
      const told = `seed ${run.seed}, write ${nth}${isBypassing ? ' past the gateway' : ''}: ${JSON.stringify(write)}: ${path}`
      older.push(told)
      run.tell(`OLDER, ${told}`)
    }
  }
  try {
    for (let nth = 0; nth < run.writes; nth += 1) await one(nth)
    return { refused, bypassing, compared, left: left / run.writes, older }
  } finally {
    await measured.stop()
  }
}
