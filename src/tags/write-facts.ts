import type { Found } from '../contracts/finding.ts'
import type { WriteResponse } from './tagger.ts'

/** The item that a path is about: revisions and autosaves are parts of their parent. */
export const itemInPath = (found: Found): string | undefined => {
  const { id, parent } = found.pathParameters
  return parent ?? id
}

/** WordPress says with 501 that what it was asked to put into the trash has none: the one 5xx of which it is known that nothing was done. */
const hasNoTrash = ({ status, content }: WriteResponse): boolean =>
  status === 501 && content !== undefined && content.includes('"rest_trash_not_supported"')

/** A refusal changed nothing; a success did; of anything else nobody knows. */
export const outcomeOf = (response: WriteResponse | undefined): 'done' | 'nothing' | 'unknown' => {
  if (response === undefined) return 'unknown'
  if (response.status >= 200 && response.status < 300) return 'done'
  const refused = (response.status >= 400 && response.status < 500) || hasNoTrash(response)
  return refused ? 'nothing' : 'unknown'
}
