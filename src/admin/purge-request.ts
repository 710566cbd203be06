import { isJsonObject, type JsonObject } from '../http/json-text.ts'
import { hidden } from '../http/redaction.ts'

/** A selector of a purge, in public URLs and paths. */
export type PurgeSelection =
  | { readonly by: 'url' | 'tag' | 'prefix'; readonly text: string }
  | { readonly by: 'all' }

export type PurgeRequest = {
  /** At least one. */
  readonly selections: readonly PurgeSelection[]
  readonly mode: 'soft' | 'hard'
  readonly dryRun: boolean
  /** Only this service; undefined for all. */
  readonly service: string | undefined
  /** How many of the most used targets are fetched again; 0 = none. */
  readonly warm: number
}

export type RequestReading<Request> =
  | { readonly kind: 'read'; readonly request: Request }
  | { readonly kind: 'fault'; readonly detail: string }

const maxSelectors = 1_000
const maxWarmed = 1_000
/** With `warm: true`. */
const warmedByDefault = 100
const longest = 8192

export const fault = (detail: string): RequestReading<never> => ({ kind: 'fault', detail })

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= longest

/** Copied from a list or a log, it would find nothing, and leave what is meant. */
const redactedDetail = `${hidden} stands in place of a secret: name what is meant in full, or a prefix that ends before it`

/** A kind of selector: a member for one, and a member for a list of several. */
type SelectorRow = {
  readonly singular: 'url' | 'tag' | 'prefix'
  readonly plural: string
  readonly expected: string
}

const rows: readonly SelectorRow[] = [
  {
    singular: 'url',
    plural: 'urls',
    expected: `a public URL or path of 1 to ${longest} characters`,
  },
  {
    singular: 'tag',
    plural: 'tags',
    expected: `a text of 1 to ${longest} characters`,
  },
  {
    singular: 'prefix',
    plural: 'prefixes',
    expected: `a path that begins with "/", of 1 to ${longest} characters`,
  },
]

const selectorNames = [...rows.flatMap(({ singular, plural }) => [singular, plural]), 'all']
const memberNames: ReadonlySet<string> = new Set([...selectorNames, 'mode', 'dryRun', 'service', 'warm'])

const selected = ({ singular }: SelectorRow, value: unknown): PurgeSelection | undefined =>
  isText(value) && (singular !== 'prefix' || value.startsWith('/'))
    ? { by: singular, text: value }
    : undefined

/** The selections of one kind, or the fault of the first wrong one. */
const selectionsOf = (row: SelectorRow, members: JsonObject): PurgeSelection[] | string => {
  const { singular, plural, expected } = row
  const selections: PurgeSelection[] = []
  if (members[singular] !== undefined) {
    const selection = selected(row, members[singular])
    if (selection === undefined) return `${singular}: expected ${expected}`
    selections.push(selection)
  }
  const list = members[plural]
  if (list === undefined) return selections
  if (!Array.isArray(list) || list.length === 0) return `${plural}: expected a list with at least one entry`
  for (const [at, value] of list.entries()) {
    const selection = selected(row, value)
    if (selection === undefined) return `${plural}[${at}]: expected ${expected}`
    selections.push(selection)
  }
  return selections
}

const readSelections = (members: JsonObject): PurgeSelection[] | string => {
  const selectors = selectorNames.filter((name) => members[name] !== undefined)
  if (selectors.length === 0) return `expected at least one of ${selectorNames.join(', ')}`
  if (members['all'] !== undefined) {
    if (members['all'] !== true) return 'all: expected true'
    return selectors.length === 1 ? [{ by: 'all' }] : 'all: it includes everything else; leave out the others'
  }
  const all: PurgeSelection[] = []
  for (const row of rows) {
    const selections = selectionsOf(row, members)
    if (typeof selections === 'string') return selections
    all.push(...selections)
  }
  if (all.some((selection) => selection.by !== 'all' && selection.text.includes(hidden)))
    return redactedDetail
  return all.length <= maxSelectors
    ? all
    : `expected at most ${maxSelectors} selectors in one request; use a tag, a prefix or all`
}

const warmCount = (warm: unknown): number | undefined => {
  if (warm === true) return warmedByDefault
  if (warm === undefined || warm === false) return 0
  return Number.isInteger(warm) && Number(warm) >= 0 && Number(warm) <= maxWarmed ? Number(warm) : undefined
}

/** Reads the content of POST /cache/purge. Strict: a misspelt key must not turn into a larger purge. */
export const readPurgeRequest = (content: unknown): RequestReading<PurgeRequest> => {
  if (!isJsonObject(content)) return fault('expected a JSON object')
  if (Object.keys(content).some((name) => !memberNames.has(name))) {
    return fault(`unknown member; known are ${[...memberNames].join(', ')}`)
  }
  const selections = readSelections(content)
  if (typeof selections === 'string') return fault(selections)
  const { mode = 'hard', dryRun = false, service } = content
  if (mode !== 'hard' && mode !== 'soft') return fault('mode: expected "hard" or "soft"')
  if (typeof dryRun !== 'boolean') return fault('dryRun: expected true or false')
  if (service !== undefined && !isText(service)) return fault('service: expected the name of a service')
  const warm = warmCount(content['warm'])
  if (warm === undefined) return fault(`warm: expected true, false or a number from 0 to ${maxWarmed}`)
  if (warm > 0 && dryRun) return fault('warm: nothing is removed with dryRun, so there is nothing to fetch')
  return { kind: 'read', request: { selections, mode, dryRun, service, warm } }
}

export type WarmRequest = {
  readonly urls: readonly string[]
  /** Answer when they have been fetched. */
  readonly wait: boolean
}

export const readWarmRequest = (content: unknown): RequestReading<WarmRequest> => {
  if (!isJsonObject(content) || Object.keys(content).some((name) => name !== 'urls' && name !== 'wait'))
    return fault('expected a JSON object with the members urls and wait only')
  const { urls, wait = false } = content
  if (typeof wait !== 'boolean') return fault('wait: expected true or false')
  if (!Array.isArray(urls) || urls.length === 0 || urls.length > maxWarmed)
    return fault(`urls: expected a list of 1 to ${maxWarmed} public URLs or paths`)
  if (urls.some((url) => isText(url) && url.includes(hidden))) return fault(redactedDetail)
  const wrong = urls.findIndex((url) => !isText(url))
  return wrong === -1
    ? { kind: 'read', request: { urls: urls as string[], wait } }
    : fault(`urls[${wrong}]: expected a public URL or path of 1 to ${longest} characters`)
}
