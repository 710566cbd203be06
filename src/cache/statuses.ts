/** Final statuses whose caching the gateway understands (RFC 9110 §15, RFC 9111 §3): 304 is handled apart. */
const understood: ReadonlySet<number> = new Set([
  200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407,
  408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 428, 429, 431, 451, 500, 501, 502, 503,
  504, 505,
])

/** RFC 9110 §15.1 */
const heuristicallyCacheable: ReadonlySet<number> = new Set([
  200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
])

/** Does the gateway know what this status asks of a cache (must-understand, RFC 9111 §5.2.2.3)? */
export const isUnderstood = (status: number): boolean => understood.has(status)

/** May be cached without explicit freshness (RFC 9110 §15.1). */
export const isHeuristicallyCacheable = (status: number): boolean => heuristicallyCacheable.has(status)
