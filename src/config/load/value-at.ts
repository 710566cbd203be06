import type { Path } from '../fault.ts'

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

const changed = (
  value: unknown,
  [step, ...rest]: Path,
  change: (holder: Container, step: string | number) => unknown,
): unknown => {
  if (step === undefined || !isContainer(value) || !Object.hasOwn(value, step)) return value
  if (rest.length === 0) return change(value, step)
  const inner = changed(value[step], rest, change)
  if (Array.isArray(value)) return value.with(Number(step), inner)
  return { ...value, [step]: inner }
}

/** A copy in which an existing value is replaced. */
export const withValueAt = (value: unknown, path: Path, replacement: unknown): unknown =>
  changed(value, path, (holder, step) =>
    Array.isArray(holder) ? holder.with(Number(step), replacement) : { ...holder, [step]: replacement },
  )

/** A copy without the value. A list is removed as a whole: without one item the paths of the others would change. */
export const withoutValueAt = (value: unknown, path: Path): unknown => {
  const list = path.findIndex((step) => typeof step === 'number')
  const upTo = list === -1 ? path : path.slice(0, list)
  return changed(value, upTo, (holder, step) => {
    const { [step]: _removed, ...rest } = holder
    return rest
  })
}
