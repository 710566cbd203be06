/** Where something stands in the file, counted from 1. */
export type Position = { readonly line: number; readonly column: number }

/** One thing that is wrong with a configuration. */
export type ConfigFault = Position & {
  /** Key as people write it, e.g. `services.site.batch.maxItems`; '' for the file as a whole. */
  readonly path: string
  readonly message: string
  /** The name that was probably meant. */
  readonly suggestion?: string
}

export type Path = readonly (string | number)[]

/** A fault whose place in the file is not looked up yet. `at: 'key'` points at the key instead of its value. */
export type UnplacedFault = {
  readonly path: Path
  readonly message: string
  readonly at: 'key' | 'value'
  readonly suggestion?: string
}

/** A fault of the value that stands there. */
export const faultAt = (path: Path, message: string): UnplacedFault => ({ path, message, at: 'value' })

/** The fault of a value for which a check across values does not hold. */
export const faultWhen = (broken: boolean, path: Path, message: string): UnplacedFault[] =>
  broken ? [faultAt(path, message)] : []

/** `services.site.cache.rules[0].ttl` */
export const pathText = (path: Path): string =>
  path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('')
