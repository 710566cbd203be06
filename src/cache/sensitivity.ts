import { createsWhenRead, cronParameter, runsCron } from '../contracts/site/writing-reads.ts'
import { foldPhpName } from '../http/php-names.ts'

/** What in a target makes an answer unfit for sharing, or a GET something else than a read. */
export type Sensitivity =
  | 'creating-read'
  | 'cron'
  | 'method-override'
  | 'nonce'
  | 'password'
  | 'context-edit'
  | 'non-public-status'

/**
 * With these a GET may do something: the route creates, WordPress carries out its scheduled tasks, its interface takes the GET
 * for a write, an admin screen carries it out.
 */
const acting: ReadonlySet<Sensitivity> = new Set(['creating-read', 'cron', 'method-override', 'nonce'])

/** May a GET do something with it? */
export const isActing = (sensitivity: Sensitivity): boolean => acting.has(sensitivity)

const isReading = (method: string): boolean => /^(?:get|head|options)?$/i.test(method)

const isPublicStatus = (value: string): boolean =>
  value
    .toLowerCase()
    .split(/[\s,]+/)
    .every((status) => status === '' || status === 'publish' || status === 'inherit')

const readParameter = (name: string, value: string): Sensitivity | undefined => {
  // In lower case: a service that is not PHP may not tell cases apart.
  switch (foldPhpName(name).toLowerCase()) {
    case '_wpnonce':
      return 'nonce'
    case '_method':
      return isReading(value) ? undefined : 'method-override'
    case 'rest_route':
      return createsWhenRead(value) ? 'creating-read' : undefined
    case cronParameter:
      return 'cron'
    case 'password':
      return 'password'
    case 'context':
      return value.trim().toLowerCase() === 'edit' ? 'context-edit' : undefined
    case 'status':
      return isPublicStatus(value) ? undefined : 'non-public-status'
    default:
      return undefined
  }
}

/** The first with which something may be done, else the first. */
const sensitiveParameter = (query: string): Sensitivity | undefined => {
  if (query === '') return undefined
  let first: Sensitivity | undefined
  for (const [name, value] of new URLSearchParams(query)) {
    const found = readParameter(name, value)
    if (found !== undefined && isActing(found)) return found
    first ??= found
  }
  return first
}

/** What is sensitive in a target (query without `?`). Depends on the target alone: keep it with the memoised canonical form. */
export const sensitivityOf = (path: string, query: string): Sensitivity | undefined => {
  if (createsWhenRead(path)) return 'creating-read'
  return runsCron(path) ? 'cron' : sensitiveParameter(query)
}
