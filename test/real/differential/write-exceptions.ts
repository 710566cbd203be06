import type { Exception } from './exceptions.ts'

/** Writes that differ on purpose. */
export const writeExceptions: readonly Exception[] = []

/** Writes that WordPress refuses for their arguments and the gateway leaves to it. */
export const writesLeftToWordPress: readonly {
  readonly reason: string
  readonly cases: readonly string[]
}[] = []
