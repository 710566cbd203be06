import { METHODS } from 'node:http'

/**
 * What a request does, decided once for each (service/decide.ts): it reads through the cache, passes it by and changes nothing, or
 * writes. Everything that depends on that reads the effect; a method alone does not say it.
 */
export type Effect = 'read' | 'pass' | 'write'

const safe: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY'])

/** RFC 9110 §9.2.1, RFC 10008 for QUERY. An unknown method counts as unsafe (RFC 9111 §4.4). Only service/decide.ts asks. */
export const isSafe = (method: string): boolean => safe.has(method)

/** May a request be sent twice (RFC 9110 §9.2.2)? Not one with a safe method that writes all the same. */
export const isRepeatable = (method: string, effect: Effect): boolean =>
  effect === 'read' || (safe.has(method) ? effect !== 'write' : method === 'PUT' || method === 'DELETE')

export const isGet = (method: string): boolean => method === 'GET'

/** Its response is the one to GET without the content (RFC 9110 §9.3.2). */
export const isHead = (method: string): boolean => method === 'HEAD'

/** Content has no meaning in such a request (RFC 9110 §9.3.1), and 304 is for these alone (§13.1.2). */
export const isGetOrHead = (method: string): boolean => method === 'GET' || method === 'HEAD'

/** Its content is part of the key of its response (RFC 10008 §2.7). */
export const isKeyedByContent = (method: string): boolean => method === 'QUERY'

/** A cache may store responses to these for requests of the same method (RFC 9110 §9.2.3, RFC 10008 §2.7). */
export const isCacheable = (method: string): boolean => isGetOrHead(method) || isKeyedByContent(method)

export const isOptions = (method: string): boolean => method === 'OPTIONS'

export const isPost = (method: string): boolean => method === 'POST'

const namedByPost: ReadonlySet<string> = new Set(['PUT', 'PATCH', 'DELETE'])

/** May a POST name this method in its place? Only one that changes something, as POST does: no cache takes it for a read. */
export const isNamedByPost = (method: string): boolean => namedByPost.has(method)

export const isDelete = (method: string): boolean => method === 'DELETE'

/** The Destination header names a second target (RFC 4918 §9.8, §9.9). */
export const hasDestination = (method: string): boolean => method === 'MOVE' || method === 'COPY'

/** CONNECT asks for a tunnel and TRACE for an echo of the credentials (RFC 9110 §9.3.6, §9.3.8): neither is routed. */
export const routedMethods: readonly string[] = METHODS.filter(
  (method) => method !== 'CONNECT' && method !== 'TRACE',
)

const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'QUERY',
])

/** The method as metrics, logs and traces name it; `_OTHER` for whatever else a client writes (OpenTelemetry HTTP conventions). */
export const methodName = (method: string): string => (knownMethods.has(method) ? method : '_OTHER')
