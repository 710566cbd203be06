/** A position in the file, counted from 1. */
export type Position = { readonly line: number; readonly column: number }

/** One error in a configuration. */
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

export type Path = readonly (string | number)[]

/** A fault without its position in the file yet. `at: 'key'` means the position of the key instead of its value. */
export type UnplacedFault = {
  readonly path: Path
  readonly message: string
  readonly at: 'key' | 'value'
  readonly suggestion?: string
}

export const faultAt = (path: Path, message: string): UnplacedFault => ({ path, message, at: 'value' })

/** One fault if the condition holds, otherwise none. */
export const faultWhen = (broken: boolean, path: Path, message: string): UnplacedFault[] =>
  broken ? [faultAt(path, message)] : []

/** `services.site.cache.rules[0].ttl` */
export const pathText = (path: Path): string =>
  path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('')
