import type { Meaning } from './list-meanings.ts'

/** Picks one of several; successive calls of one chooser are independent. */
export type Choose = <T>(...options: readonly [T, ...T[]]) => T

/** A chooser that follows a list of random numbers, round and round. */
export const chooserOf = (numbers: readonly number[]): Choose => {
  let next = 0
  return (...options) => {
    const number = numbers[next % numbers.length] ?? 0
    next += 1
    return options[number % options.length] ?? options[0]
  }
}

const everyCharacter = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')

const escapeText = (text: string, choose: Choose): string => {
  const tidy = encodeURIComponent(text)
  return choose(
    tidy,
    tidy,
    tidy.replaceAll('%20', '+'),
    everyCharacter(text),
    tidy.toLowerCase() === tidy ? tidy : tidy.replace(/%../g, (code) => code.toLowerCase()),
  )
}

const integer = (value: number, choose: Choose): string =>
  choose(
    String(value),
    String(value),
    `0${value}`,
    `%2B${value}`,
    `+${value}`,
    `${value}.0`,
    `${value}e0`,
    `${value}%20`,
  )

const boolean = (value: boolean, choose: Choose): string =>
  value ? choose('true', 'TRUE', '1', 'True') : choose('false', 'False', '0', 'FALSE')

type Pair = readonly [name: string, value: string]

const bracket = (name: string, index: string, choose: Choose): string =>
  choose(`${name}[${index}]`, `${name}%5B${index}%5D`, `${name}%5b${index}]`)

const listed = (name: string, items: readonly string[], choose: Choose, plain: boolean): Pair[] => {
  const inOne: Pair[] = [[name, items.join(choose(',', '%2C', ',+', '%20'))]]
  const appended = items.map((item): Pair => [bracket(name, '', choose), item])
  const indexed = items.map((item, index): Pair => [bracket(name, String(index * 2 + 1), choose), item])
  if (!plain) return choose(appended, indexed)
  return items.length === 0 ? [[name, choose('', ',', '+')]] : choose(inOne, appended, indexed)
}

const isPlain = (items: readonly string[]): boolean => items.every((item) => /^[^\s,]+$/.test(item))

const texts = (name: string, items: readonly string[], choose: Choose): Pair[] => {
  const spelled = items.map((item) => escapeText(item, choose))
  return listed(name, spelled, choose, isPlain(items))
}

/** Same members, another order and repetitions: only for lists that are sets. */
const reshuffled = <T>(items: readonly T[], choose: Choose): T[] => {
  const turned = choose([...items], [...items].reverse(), items.slice(1).concat(items.slice(0, 1)))
  const [first] = turned
  return first === undefined ? turned : choose(turned, [...turned, first])
}

const instant = (after: NonNullable<Meaning['after']>, choose: Choose): string => {
  const hours = after.zoned ? choose(0, 2, -5) : 0
  const wall = new Date((after.seconds + hours * 3600) * 1000).toISOString().slice(0, 19)
  const text = choose(wall, wall.replace('T', '%20'), wall.replace('T', 't'), `${wall}.25`)
  if (!after.zoned) return text
  const sign = hours < 0 ? '-' : '%2B'
  const digits = String(Math.abs(hours)).padStart(2, '0')
  return text + (hours === 0 ? choose('Z', '%2B00:00', '-00') : `${sign}${digits}${choose('', ':00')}`)
}

const termFilter = ({ terms, and, children }: NonNullable<Meaning['categories']>, choose: Choose): Pair[] => {
  const spelled = reshuffled(terms, choose).map((term) => integer(term, choose))
  if (!and && !children && choose(true, false)) return listed('categories', spelled, choose, false)
  const pairs = listed(bracket('categories', 'terms', choose), spelled, choose, false)
  if (and || choose(true, false)) pairs.push([bracket('categories', 'operator', choose), and ? 'AND' : 'OR'])
  if (children || choose(true, false))
    pairs.push([bracket('categories', 'include_children', choose), boolean(children, choose)])
  return pairs
}

const embed = (value: NonNullable<Meaning['embed']>, choose: Choose): Pair[] => {
  if (value === true) return [['_embed', choose('', '1', 'true', '0')]]
  const items = reshuffled(value, choose)
  const readsAsAll = items.length === 1 && ['0', '1', 'true'].includes(items[0] ?? '')
  return listed('_embed', items, choose, !readsAsAll)
}

const integers = (name: string, items: readonly number[], isSet: boolean, choose: Choose): Pair[] =>
  listed(
    name,
    (isSet ? reshuffled(items, choose) : items).map((item) => integer(item, choose).replace(/%20$/, '')),
    choose,
    false,
  )

const scalars = (m: Meaning, choose: Choose): Pair[] => {
  const pairs: Pair[] = []
  for (const name of ['page', 'per_page', 'offset'] as const) {
    const value = m[name]
    if (value !== undefined) pairs.push([name, integer(value, choose)])
  }
  if (m.search !== undefined) pairs.push(['search', escapeText(m.search, choose)])
  if (m.order !== undefined) pairs.push(['order', m.order])
  if (m.orderby !== undefined) pairs.push(['orderby', m.orderby])
  if (m.sticky !== undefined) pairs.push(['sticky', boolean(m.sticky, choose)])
  if (m.after !== undefined) pairs.push(['after', instant(m.after, choose)])
  return pairs
}

const lists = (m: Meaning, choose: Choose): Pair[][] => {
  const slugs = m.slug !== undefined && m.orderby !== 'include_slugs' ? reshuffled(m.slug, choose) : m.slug
  const headers =
    m.headers?.includes('title.raw') === true ? m.headers : m.headers && reshuffled(m.headers, choose)
  return [
    m.include === undefined ? [] : integers('include', m.include, m.orderby !== 'include', choose),
    m.exclude === undefined ? [] : integers('exclude', m.exclude, true, choose),
    slugs === undefined ? [] : texts('slug', slugs, choose),
    m.status === undefined ? [] : texts('status', reshuffled(m.status, choose), choose),
    m.categories === undefined ? [] : termFilter(m.categories, choose),
    m.embed === undefined ? [] : embed(m.embed, choose),
    headers === undefined ? [] : texts('_fields', headers, choose),
  ]
}

/** One of the many queries that mean the same. Empty lists of brackets cannot be written, so they are written as an empty text. */
export const spellQuery = (m: Meaning, choose: Choose): string => {
  const noise: Pair[][] = [
    choose([], [['utm_source', 'x']]),
    choose([], [['page_', '7']]),
    m.page === undefined ? choose([], [['page', '1']]) : [],
    m.order === undefined ? choose([], [['order', 'desc']]) : [],
    m.per_page === undefined ? choose([], [['per.page', '10']]) : [],
  ]
  const groups = [...scalars(m, choose).map((pair) => [pair]), ...lists(m, choose), ...noise]
  const turn = choose(0, 1, 2, 3, 5)
  const ordered = [...groups.slice(turn), ...groups.slice(0, turn)]
  return (choose(true, false) ? ordered : ordered.reverse())
    .flat()
    .map(([name, value]) => `${name}=${value}`)
    .join(choose('&', '&', '&&'))
}
