import { isActing, type Sensitivity } from '../../cache/decide-caching.ts'
import { pathReadings } from '../../http/path-readings.ts'
import { foldPhpName } from '../arguments/php-names.ts'
import { createsWhenRead, cronParameter, runsCron } from './side-effects.ts'

/**
 * Does a GET with it change something at the interface of a site? Its other parameters of that kind are refused, or are arguments of
 * the route.
 */
export const actsAtInterface = (sensitivity: Sensitivity): boolean =>
  sensitivity === 'creating-read' || sensitivity === 'cron'

/**
 * Does a GET with it change something at the pages of a site? It may be a link of an admin screen (trash, activate: a nonce),
 * WordPress's own override of the method, or its scheduled tasks.
 */
export const actsAtPages = isActing

const isReading = (method: string): boolean => /^(?:get|head|options)?$/i.test(method)

const isPublicStatus = (value: string): boolean =>
  value
    .toLowerCase()
    .split(/[\s,]+/)
    .every((status) => status === '' || status === 'publish' || status === 'inherit')

const readParameter = (name: string, value: string): Sensitivity | undefined => {
  // In lower case: names may be case-insensitive in a service that is not PHP.
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

/** The first one with which a GET may change something, else the first one. */
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

/**
 * What in a path or a query (without `?`) keeps the response to a GET from being shared, by the names of WordPress. Depends on the
 * target alone: it is stored with the memoised canonical form.
 */
export const sensitivityOf = (path: string, query: string): Sensitivity | undefined => {
  const readings = pathReadings(path)
  if (readings.some(createsWhenRead)) return 'creating-read'
  return readings.some(runsCron) ? 'cron' : sensitiveParameter(query)
}
