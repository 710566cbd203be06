/** A position in the file, counted from 1. */
export type Position = { readonly line: number; readonly column: number }

export type ConfigFault = Position & {
  /** Key such as `services.site.batch.maxItems`; '' for the file as a whole. */
  readonly path: string
  readonly message: string
  /** A known name that is similar to an unknown one. */
  readonly suggestion?: string
}

/** A fault as people read it, without its position: `limit: unknown key (did you mean "limits"?)`. */
export const faultText = ({ path, message, suggestion }: Omit<ConfigFault, keyof Position>): string => {
  const key = path === '' ? '' : `${path}: `
  const hint = suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`
  return `${key}${message}${hint}`
}

/** A fault with its position in the file: `12:1 limit: unknown key`. */
export const faultLine = (fault: ConfigFault): string => `${fault.line}:${fault.column} ${faultText(fault)}`

/** The value of a text, or why it has none. */
export type Reading<Value> =
  | { readonly kind: 'read'; readonly value: Value }
  | { readonly kind: 'fault'; readonly message: string }

export const fault = (message: string): Reading<never> => ({ kind: 'fault', message })

export type Path = readonly (string | number)[]

/** A fault without its position in the file yet. `at: 'key'` means the position of the key instead of its value. */
export type UnplacedFault = {
  readonly path: Path
  readonly message: string
  readonly at: 'key' | 'value'
  readonly suggestion?: string
  /** Another value that the fault is about: where that one is faulty itself, this fault says nothing. */
  readonly beside?: Path
}

export const faultAt = (path: Path, message: string): UnplacedFault => ({ path, message, at: 'value' })

/** `services.site.cache.rules[0].ttl` */
export const pathText = (path: Path): string =>
  path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('')

type Container = Readonly<Record<string | number, unknown>>

const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null

/** The value at a path of own keys, or undefined. */
export const valueAt = (value: unknown, path: Path): unknown => {
  let current = value
  for (const step of path) {
    if (!isContainer(current) || !Object.hasOwn(current, step)) return undefined
    current = current[step]
  }
  return current
}

const withChange = (
  value: unknown,
  [step, ...rest]: Path,
  change: (holder: Container, step: string | number) => unknown,
): unknown => {
  if (step === undefined || !isContainer(value) || !Object.hasOwn(value, step)) return value
  if (rest.length === 0) return change(value, step)
  const inner = withChange(value[step], rest, change)
  if (Array.isArray(value)) return value.with(Number(step), inner)
  return { ...value, [step]: inner }
}

/** A copy in which an existing value is replaced. */
export const withValueAt = (value: unknown, path: Path, replacement: unknown): unknown =>
  withChange(value, path, (holder, step) =>
    Array.isArray(holder) ? holder.with(Number(step), replacement) : { ...holder, [step]: replacement },
  )

/** A copy without the value. A list is removed as a whole: without one item the paths of the others would change. */
export const withoutValueAt = (value: unknown, path: Path): unknown => {
  const list = path.findIndex((step) => typeof step === 'number')
  const upTo = list === -1 ? path : path.slice(0, list)
  return withChange(value, upTo, (holder, step) => {
    const { [step]: _removed, ...rest } = holder
    return rest
  })
}

/** Longer names get no suggestion; this also bounds the table below. */
const longestName = 64

/** Damerau–Levenshtein distance (optimal string alignment). */
const editDistance = (a: string, b: string): number => {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let best = Math.min((previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1, replaced)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) best = Math.min(best, (beforePrevious[j - 2] ?? 0) + 1)
      current.push(best)
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length] ?? 0
}

/** Ignores case and separators: `max_bytes`, `max-bytes` and `MaxBytes` all mean `maxBytes`. */
const folded = (name: string): string => name.toLowerCase().replaceAll(/[-_ ]/g, '')

/** The known name that is most similar, or undefined when none is similar enough. */
export const closestName = (name: string, knownNames: readonly string[]): string | undefined => {
  if (name.length > longestName) return undefined
  const foldedName = folded(name)
  let closest: string | undefined
  let fewest = Math.max(1, Math.floor(foldedName.length / 3)) + 1
  for (const candidate of knownNames) {
    const edits = editDistance(foldedName, folded(candidate))
    if (edits < fewest) {
      fewest = edits
      closest = candidate
    }
  }
  return closest
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'the user of the process may not read it',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
}

/** Why a file cannot be read, with the error code of the system. */
export const unreadableFile = (
  what: 'file' | `file ${string}` | `secret file ${string}`,
  cause: unknown,
): string => {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'no code'
  const reason = reasons[code]
  return `the ${what} cannot be read${reason === undefined ? '' : `, ${reason}`} (${code})`
}
