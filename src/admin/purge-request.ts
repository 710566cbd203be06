/** The selector of a purge, in public URLs and paths. */
export type PurgeSelection =
  | { readonly by: 'url'; readonly url: string }
  | { readonly by: 'tag'; readonly tag: string }
  | { readonly by: 'prefix'; readonly prefix: string }
  | { readonly by: 'all' }

export type PurgeRequest = {
  readonly selection: PurgeSelection
  readonly mode: 'soft' | 'hard'
  readonly dryRun: boolean
  /** Only this service; undefined for all. */
  readonly service: string | undefined
}

export type PurgeReading =
  | { readonly kind: 'read'; readonly request: PurgeRequest }
  | { readonly kind: 'fault'; readonly detail: string }

type Members = Readonly<Record<string, unknown>>

const known: ReadonlySet<string> = new Set(['url', 'tag', 'prefix', 'all', 'mode', 'dryRun', 'service'])
const selectors = ['url', 'tag', 'prefix', 'all'] as const
const longest = 8192

const fault = (detail: string): PurgeReading => ({ kind: 'fault', detail })

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= longest

const isMembers = (content: unknown): content is Members =>
  typeof content === 'object' && content !== null && !Array.isArray(content)

const selectionOf = ({ url, tag, prefix, all }: Members): PurgeSelection | undefined => {
  if (isText(url)) return { by: 'url', url }
  if (isText(tag)) return { by: 'tag', tag }
  if (isText(prefix) && prefix.startsWith('/')) return { by: 'prefix', prefix }
  return all === true ? { by: 'all' } : undefined
}

const selectorFaults: Readonly<Record<(typeof selectors)[number], string>> = {
  url: `url: expected a public URL or path of 1 to ${longest} characters`,
  tag: `tag: expected a text of 1 to ${longest} characters`,
  prefix: `prefix: expected a path that begins with "/", of 1 to ${longest} characters`,
  all: 'all: expected true',
}

/** Reads the content of POST /cache/purge. Strict: a misspelt key must not turn into a larger purge. */
export const readPurgeRequest = (content: unknown): PurgeReading => {
  if (!isMembers(content)) return fault('expected a JSON object')
  if (Object.keys(content).some((name) => !known.has(name))) {
    return fault(`unknown member; known are ${[...known].join(', ')}`)
  }
  const given = selectors.filter((name) => content[name] !== undefined)
  const [selector] = given
  if (given.length !== 1 || selector === undefined) {
    return fault(`expected exactly one of ${selectors.join(', ')}`)
  }
  const selection = selectionOf(content)
  if (selection === undefined) return fault(selectorFaults[selector])
  const { mode = 'hard', dryRun = false, service } = content
  if (mode !== 'hard' && mode !== 'soft') return fault('mode: expected "hard" or "soft"')
  if (typeof dryRun !== 'boolean') return fault('dryRun: expected true or false')
  if (service !== undefined && !isText(service)) return fault('service: expected the name of a service')
  return { kind: 'read', request: { selection, mode, dryRun, service } }
}
