import { forAll } from '../for-all.ts'
import type { StaleResponse } from './fuzz-site.ts'
import { sendWrite } from './send-write.ts'
import type { FuzzedSite, Read } from './site-under-fuzz.ts'
import { type Created, type Operation, referencesIn, resolved, type Write } from './write.ts'

/** Writes on a fresh copy of the site, the responses read before the last of them, and the one of these that is stale after it. */
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
const maxReplays = 160
const maxMs = 60_000

/** A body without one of its members, or with one piece of its content alone. */
const smallerBodies = (body: NonNullable<Operation['body']>): Operation['body'][] =>
  Object.entries(body).flatMap(([member, value]) => {
    const { [member]: _, ...rest } = body
    const pieces = typeof value === 'string' && member === 'content' ? value.split('\n\n') : []
    const alone = pieces.length > 1 ? pieces.map((piece) => ({ ...body, content: piece })) : []
    return Object.keys(rest).length > 0 ? [rest, ...alone] : alone
  })

/** Without what it was made of, one thing at a time. */
const smaller = (write: Write): Write[] => {
  const { name, kind } = write
  if (write.door === 'batch') {
    return write.operations.map((operation) => ({ name, kind, door: 'rest', style: 'json', operation }))
  }
  if (write.door !== 'rest') return []
  const { operation, style } = write
  const plain: Write[] = style === 'json' ? [] : [{ ...write, style: 'json' }]
  const bodies = smallerBodies(operation.body ?? {})
  return [
    ...plain,
    ...bodies.map(
      (body): Write => ({ ...write, operation: { ...operation, ...(body === undefined ? {} : { body }) } }),
    ),
  ]
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

/** The shortest sequence found that leaves the same response stale; undefined when none did so again. */
export const shrink = async (site: FuzzedSite, stale: StaleResponse): Promise<Shrunk | undefined> => {
  const { read } = stale
  const began = performance.now()
  let replays = 0

  const replay = async (writes: readonly Write[], before: readonly Read[]): Promise<Shrunk | undefined> => {
    if (replays >= maxReplays || performance.now() - began > maxMs) return undefined
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
  /** What came before a suspect as far as it needs it, then all of it; with nothing stored but the response, then with all that was. */
  const attempts = function* (): Generator<readonly [readonly Write[], readonly Read[]]> {
    for (const before of [[], stale.stored]) {
      for (const suspect of suspects.slice(0, 12)) {
        yield [[...needed(stale.writes, suspect, read), suspect], before]
      }
    }
    for (const before of [[], stale.stored]) {
      for (const suspect of suspects.slice(0, 6)) {
        yield [stale.writes.slice(0, stale.writes.indexOf(suspect) + 1), before]
      }
    }
  }
  const begin = async (): Promise<Shrunk | undefined> => {
    for (const [writes, before] of attempts()) {
      const found = await replay(writes, before)
      if (found !== undefined) return found
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

  /** Leaves out halves, quarters and so on, as long as the response is stale without them. */
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
