type Wanted = { readonly [name: string]: Wanted | true }

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** Names given by `_fields`, as a list or separated by commas. */
const askedFields = (query: string): readonly string[] => {
  if (!query.includes('_fields')) return []
  const parameters = new URLSearchParams(query)
  return ['_fields', '_fields[]']
    .flatMap((name) => parameters.getAll(name))
    .flatMap((value) => value.split(/[\s,]/))
    .filter((name) => name !== '')
    .slice(0, 200)
}

const tree = (paths: readonly string[]): Wanted => {
  const heads = new Map<string, string[]>()
  const whole = new Set<string>()
  for (const path of paths) {
    const [head = '', ...rest] = path.split('.')
    if (rest.length === 0) whole.add(head)
    heads.set(head, [...(heads.get(head) ?? []), ...(rest.length === 0 ? [] : [rest.join('.')])])
  }
  // A parent that is requested as a whole includes its parts.
  return Object.fromEntries([...heads].map(([head, rest]) => [head, whole.has(head) ? true : tree(rest)]))
}

const pick = (value: unknown, wanted: Wanted | true): unknown => {
  if (wanted === true || !isRecord(value)) return value
  const kept = Object.entries(value).filter(([name]) => Object.hasOwn(wanted, name))
  return Object.fromEntries(kept.map(([name, part]) => [name, pick(part, wanted[name] ?? true)]))
}

/** The body cut down to what `_fields` asks for; the order of the fields stays that of the body. */
export const filterFields = (query: string, body: unknown): unknown => {
  const asked = askedFields(query)
  if (asked.length === 0) return body
  const wanted = tree(asked)
  return Array.isArray(body) ? body.map((item) => pick(item, wanted)) : pick(body, wanted)
}
