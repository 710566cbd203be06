import type { RouteFinding } from '../contracts/finding.ts'
import type { Row } from '../contracts/row.ts'
import { cleanSpelling, spelled } from './path-form.ts'

/**
 * Finds the one row of the open contract. What paths mean is the upstream's matter: case, doubled slashes, trailing slashes
 * and encoded slashes stay, and only spellings that RFC 3986 §6.2.2 calls equivalent are merged.
 */
export const findAny = (row: Row, method: string, path: string): RouteFinding => {
  const cleaned = cleanSpelling(path === '' ? '/' : path, 'unreserved')
  if (cleaned.kind === 'refused') return cleaned
  // A path that begins with two slashes would be read as a host by whoever resolves it (RFC 3986 §3.3).
  const canonical = spelled(cleaned.text.replace(/^\/+/, '/'))
  const wanted = method === 'HEAD' ? 'GET' : method
  const endpoint = row.endpoints.find(({ methods }) => (methods as readonly string[]).includes(wanted))
  if (endpoint === undefined) return { kind: 'unlisted', path: canonical }
  return { kind: 'found', row, endpoint, pathParameters: {}, path: canonical }
}
