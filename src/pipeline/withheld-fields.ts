import { conditionalFields } from '../http/preconditions.ts'

const besides = (...names: readonly string[]): ReadonlySet<string> =>
  new Set([...conditionalFields, ...names])

/**
 * Fields of a client that a read through the cache does not send on: its preconditions, the cookies that no server reads, and
 * Origin where the gateway itself says which origins may read, or where all may.
 */
export const withholding = {
  asAsked: { nothing: besides(), cookie: besides('cookie') },
  withoutOrigin: { nothing: besides('origin'), cookie: besides('cookie', 'origin') },
} as const
