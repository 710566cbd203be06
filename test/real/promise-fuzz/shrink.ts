import { forAll, type StaleAnswer } from './fuzz-site.ts'
import { sendWrite } from './send-write.ts'
import type { FuzzedSite, Read } from './site-under-fuzz.ts'
import { type Created, referencesIn, resolved, type Write } from './write.ts'

/** Writes on a fresh copy of the site, the answers read before the last of them, and the one of these that is stale after it. */
export type Shrunk = {
  readonly writes: readonly Write[]
  readonly before: readonly Read[]
  readonly read: Read
  readonly shown: string
  readonly direct: string
  /** The same with ids in place of references. */
  readonly ids: Created
}

/** A long sequence is better than none, and a wait for scheduled posts is in each. */
const mostReplays = 160
const mostMs = 60_000

/** Without what they were made of, one thing at a time. */
const smaller = (write: Write): Write[] => {
  const { name, kind } = write
  if (write.door === 'batch') {
    const first = write.operations[0]
    const alone = write.operations.map(
      (operation): Write => ({ name, kind, door: 'rest', style: 'json', operation }),
    )
    return first === undefined ? [] : alone
  }
  if (write.door !== 'rest') return []
  const { operation, style } = write
  const variants: Write[] = style === 'json' ? [] : [{ ...write, style: 'json' }]
  const body = operation.body ?? {}
  for (const member of Object.keys(body)) {
    const { [member]: value, ...rest } = body
    if (Object.keys(rest).length > 0) variants.push({ ...write, operation: { ...operation, body: rest } })
    const pieces = typeof value === 'string' && member === 'content' ? value.split('\n\n') : []
    if (pieces.length > 1) {
      for (const piece of pieces) {
        variants.push({ ...write, operation: { ...operation, body: { ...body, content: piece } } })
      }
    }
  }
  return variants
}

/** The writes on which others and a read depend, by what they create. */
const needed = (writes: readonly Write[], ...values: readonly unknown[]): Write[] => {
  const names = new Set(values.flatMap(referencesIn))
  const found: Write[] = []
  for (const write of [...writes].reverse()) {
    if (!names.has(write.name)) continue
    found.unshift(write)
    for (const name of referencesIn({ ...write, name: '' })) names.add(name)
  }
  return found
}

/** The shortest sequence found that leaves the same answer stale; undefined when none did so again. */
export const shrink = async (site: FuzzedSite, stale: StaleAnswer): Promise<Shrunk | undefined> => {
  const { read } = stale
  const began = performance.now()
  let replays = 0

  const replay = async (writes: readonly Write[], before: readonly Read[]): Promise<Shrunk | undefined> => {
    if (replays >= mostReplays || performance.now() - began > mostMs) return undefined
    replays += 1
    await site.reset()
    const ids: Created = new Map()
    const last = writes.at(-1)
    if (last === undefined) return undefined
    for (const write of writes.slice(0, -1)) await sendWrite(site, write, ids)
    const asked = [...before, read].map((one) => resolved(one, ids)).filter((one) => one !== undefined)
    await forAll(asked, (one) => site.throughGateway(one))
    const own = resolved(read, ids)
    if (own === undefined || (await sendWrite(site, last, ids)) === undefined) return undefined
    const { hit, shown } = await site.throughGateway(own)
    const direct = await site.direct(own)
    return hit && shown !== direct ? { writes, before, read: own, shown, direct, ids } : undefined
  }

  const suspects = stale.writes.slice(stale.rightAfter).reverse()
  const begin = async (): Promise<Shrunk | undefined> => {
    for (const before of [[], stale.stored]) {
      for (const suspect of suspects.slice(0, 12)) {
        const found = await replay([...needed(stale.writes, suspect, read), suspect], before)
        if (found !== undefined) return found
      }
    }
    for (const before of [[], stale.stored]) {
      for (const suspect of suspects.slice(0, 6)) {
        const at = stale.writes.indexOf(suspect)
        const found = await replay(stale.writes.slice(0, at + 1), before)
        if (found !== undefined) return found
      }
    }
    return undefined
  }

  let best = await begin()
  if (best === undefined) return undefined
  const keep = async (writes: readonly Write[], before: readonly Read[]): Promise<boolean> => {
    const found = await replay(writes, before)
    if (found !== undefined) best = found
    return found !== undefined
  }

  /** Leaves out halves, quarters and so on, as long as the answer is stale without them. */
  const without = async <T>(
    list: readonly T[],
    attempt: (rest: readonly T[]) => Promise<boolean>,
  ): Promise<void> => {
    let left = list
    for (let size = Math.ceil(left.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let from = 0; from < left.length; ) {
        const rest = [...left.slice(0, from), ...left.slice(from + size)]
        if (await attempt(rest)) left = rest
        else from += size
      }
    }
  }

  const { before } = best
  const last = best.writes.at(-1) as Write
  await without(before, (rest) => keep(best?.writes ?? [], rest))
  await without(best.writes.slice(0, -1), (rest) => keep([...rest, last], best?.before ?? []))
  for (let at = best.writes.length - 1; at >= 0; at -= 1) {
    for (let goesOn = true; goesOn; ) {
      goesOn = false
      const current: Shrunk = best
      const write = current.writes[at]
      for (const variant of write === undefined ? [] : smaller(write)) {
        const attempt = current.writes.map((one, place) => (place === at ? variant : one))
        if (await keep(attempt, current.before)) {
          goesOn = true
          break
        }
      }
    }
  }
  await without(best.writes.slice(0, -1), (rest) =>
    keep([...rest, best?.writes.at(-1) as Write], best?.before ?? []),
  )
  return best
}
