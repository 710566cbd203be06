/** A document with the files that it refers to, parsed. Names are paths relative to the folder of the document. */
export type ApiBundle = {
  readonly root: string
  readonly files: Readonly<Record<string, unknown>>
}

export type JsonObject = { readonly [member: string]: unknown }

/** A value of the bundle, with its position: faults name it, and schemas are identified by it. */
export type Located = { readonly file: string; readonly path: readonly string[]; readonly node: unknown }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A member of an object; the names come from documents, and every object has a `constructor`. */
export const member = (value: unknown, name: string): unknown => {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

export const membersOf = (value: unknown): readonly (readonly [string, unknown])[] =>
  isObject(value) ? Object.entries(value) : []

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** The member of a located value. */
export const below = ({ file, path, node }: Located, ...names: readonly string[]): Located => ({
  file,
  path: [...path, ...names],
  node: names.reduce(member, node),
})

/** A step of a JSON Pointer (RFC 6901 §4). */
export const pointerStep = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

/** Identifies a value of the bundle. */
export const pointerOf = ({ file, path }: Pick<Located, 'file' | 'path'>): string =>
  `${file}#${path.map((step) => `/${pointerStep(step)}`).join('')}`

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The file that a reference names, relative to the folder of the document; undefined for one outside of it. */
export const fileOfReference = (reference: string, from: string): string | undefined => {
  const [address = ''] = reference.split('#', 1)
  if (address === '') return from
  if (/^[a-z][a-z\d+.-]*:|^\/|\\|\?/i.test(address)) return undefined
  const steps = from.split('/').slice(0, -1)
  for (const step of decoded(address).split('/')) {
    if (step === '..') {
      if (steps.length === 0) return undefined
      steps.pop()
    } else if (step !== '.' && step !== '') steps.push(step)
  }
  return steps.join('/')
}

/** The value that a reference leads to; undefined when there is none. */
export const resolve = (bundle: ApiBundle, reference: string, from: string): Located | undefined => {
  const file = fileOfReference(reference, from)
  if (file === undefined || !Object.hasOwn(bundle.files, file)) return undefined
  const fragment = reference.includes('#') ? reference.slice(reference.indexOf('#') + 1) : ''
  if (fragment !== '' && !fragment.startsWith('/')) return undefined
  const path = fragment === '' ? [] : fragment.slice(1).split('/')
  const steps = path.map((step) => decoded(step).replaceAll('~1', '/').replaceAll('~0', '~'))
  const found = below({ file, path: [], node: bundle.files[file] }, ...steps)
  return found.node === undefined ? undefined : found
}

/** References that lead to one another in more steps than this are a cycle. */
const mostReferences = 32

/**
 * The object itself, or the one that its `$ref` leads to: for parameters, bodies and other objects that are not schemas.
 * Undefined when the reference leads nowhere.
 */
export const dereferenced = (bundle: ApiBundle, located: Located): Located | undefined => {
  let current: Located | undefined = located
  for (let count = 0; count < mostReferences; count += 1) {
    if (current === undefined) return undefined
    const reference = member(current.node, '$ref')
    if (typeof reference !== 'string') return current
    current = resolve(bundle, reference, current.file)
  }
  return undefined
}

/** Files that members named `$ref` name; some may be data, such as examples. */
export const namedFiles = (value: unknown, from: string): ReadonlySet<string> => {
  const found = new Set<string>()
  const pending: unknown[] = typeof value === 'object' && value !== null ? [value] : []
  const visit = ([name, inner]: readonly [string, unknown]): void => {
    if (typeof inner === 'object' && inner !== null) pending.push(inner)
    if (name !== '$ref' || typeof inner !== 'string') return
    const file = fileOfReference(inner, from)
    if (file !== undefined && file !== from) found.add(file)
  }
  for (let next = pending.pop(); next !== undefined; next = pending.pop())
    Object.entries(next as object).forEach(visit)
  return found
}
