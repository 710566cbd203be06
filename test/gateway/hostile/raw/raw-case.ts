/** What is sent, what must come back (see Talk.summary), what the upstream must have seen (see inShort). */
export type RawCase = readonly [what: string, bytes: string, summary: string, seen: readonly string[]]

/** A request with `lines` as its headers; a Host comes with it. */
export const head = (method: string, target: string, ...lines: readonly string[]): string =>
  `${[`${method} ${target} HTTP/1.1`, 'Host: a', ...lines].join('\r\n')}\r\n\r\n`

/** A POST that an open service streams on. */
export const post = (lines: readonly string[], content: string): string =>
  `${head('POST', '/open/in', ...lines)}${content}`

/** A request that ends the connection: what stands behind a doubtful one is only reached by who saw that one end. */
export const last = head('GET', '/open/last', 'Connection: close')

/** Refused, and nothing behind it is trusted. */
export const refused = (what: string, bytes: string, status = 400): RawCase => [
  what,
  bytes + last,
  `${status}.`,
  [],
]
