import type { Random } from '../promise-fuzz/random.ts'
import type { SiteWrite } from './writes.ts'

/** A comparison costs PHP a request: after each write this many of either kind are compared, and after every tenth all. */
const maxOfKind = 3

/** The ids in a write: of its item, and of what it assigns to it. */
const idsOf = ({ path, body }: SiteWrite): ReadonlySet<string> =>
  new Set(`${path} ${JSON.stringify(body)}`.match(/(?<=[/:[,])[1-9]\d*(?=[ ,\]}]|$)/g))

const draw = <T>(from: T[], random: Random): T[] =>
  Array.from({ length: Math.min(maxOfKind, from.length) }, () =>
    from.splice(random.int(from.length), 1),
  ).flat()

/**
 * Of the responses that a write left: some that name one of its ids, which a rule that reaches too little would leave first, and some of
 * the others. One that is not drawn stays stored, and is compared later, unless another write drops it.
 */
export const chooseCompared = (
  hits: ReadonlyMap<string, string>,
  write: SiteWrite,
  random: Random,
): ReadonlyMap<string, string> => {
  const ids = idsOf(write)
  const namesOne = ([path, text]: readonly [string, string]): boolean =>
    path
      .split(/\D+/)
      .concat(text.match(/(?<=[/:[,])[1-9]\d*(?=[,\]}"?])/g) ?? [])
      .some((id) => ids.has(id))
  const all = [...hits]
  const naming = draw(all.filter(namesOne), random)
  const others = draw(
    all.filter((hit) => !naming.includes(hit)),
    random,
  )
  return new Map([...naming, ...others])
}
