import type { Found } from '../contracts/finding.ts'
import { earlyRefusals } from '../contracts/site/refusals.ts'
import type { WriteResponse } from './tagger.ts'

/** The item that a path is about: revisions and autosaves are parts of their parent. */
export const itemInPath = (found: Found): string | undefined => {
  const { id, parent } = found.pathParameters
  return parent ?? id
}

/** WordPress says with 501 that what it was asked to put into the trash has none: the one 5xx of which it is known that nothing was done. */
const hasNoTrash = ({ status, content }: WriteResponse): boolean =>
  status === 501 && content !== undefined && content.includes('"rest_trash_not_supported"')

/** Statuses of WordPress under which something may have been written before the refusal. */
const doubtful: ReadonlySet<number> = new Set([400, 401, 403, 409, 422])

type ErrorSaid = { readonly code?: unknown; readonly data?: { readonly key?: unknown } | null } | null

const errorIn = (content: Buffer): ErrorSaid => {
  try {
    return JSON.parse(content.toString('utf8')) as ErrorSaid
  } catch {
    return null
  }
}

/** Was it refused before anything was done? What is no error of WordPress comes from a server in front of it. */
const refusedEarly = ({ status, content }: WriteResponse): boolean => {
  if (!doubtful.has(status)) return true
  const error = content === undefined ? undefined : errorIn(content)
  // A meta key that may not be changed is named, and comes to light when all else is written.
  if (error?.data?.key !== undefined) return false
  // Who is nobody has changed nothing.
  if (status === 401) return true
  if (error === undefined) return false
  return typeof error?.code !== 'string' || earlyRefusals.has(error.code)
}

/** A refusal changed nothing when it came before anything was done; a success did; of anything else nobody knows. */
export const outcomeOf = (response: WriteResponse | undefined): 'done' | 'nothing' | 'unknown' => {
  if (response === undefined) return 'unknown'
  if (response.status >= 200 && response.status < 300) return 'done'
  if (response.status >= 400 && response.status < 500) return refusedEarly(response) ? 'nothing' : 'unknown'
  return hasNoTrash(response) ? 'nothing' : 'unknown'
}
