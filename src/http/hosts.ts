/** The host of an authority as hosts are compared: lower case, without port and final dot (RFC 9110 §4.2.3). */
export const hostOf = (authority: string): string => {
  const end = authority.startsWith('[') ? authority.indexOf(']') + 1 : authority.indexOf(':')
  const host = end <= 0 ? authority : authority.slice(0, end)
  return (host.endsWith('.') ? host.slice(0, -1) : host).toLowerCase()
}

const wildcard = '*'

/**
 * Indexes values by their host patterns: a host, or `*.` and a suffix of one or more labels. The cost of a lookup depends on the labels of the host, not on the
 * number of patterns.
 */
export const createHostTable = <Value>(
  rows: readonly { readonly hosts: readonly string[]; readonly value: Value }[],
) => {
  const exact = new Map<string, Value[]>()
  const bySuffix = new Map<string, Value[]>()
  for (const { hosts, value } of rows) {
    for (const pattern of hosts) {
      const isWildcard = pattern.startsWith(wildcard)
      const values = isWildcard ? bySuffix : exact
      const key = isWildcard ? pattern.slice(1) : pattern
      values.set(key, [...(values.get(key) ?? []), value])
    }
  }
  return {
    /** The values for a host, those of the most specific pattern first: the host itself, then the longest wildcard. */
    matching: (host: string): readonly Value[] => {
      const found = [...(exact.get(host) ?? [])]
      // No name has an empty label (RFC 1034 §3.1).
      if (host.startsWith('.') || host.includes('..')) return found
      // A suffix begins with its dot, so that `*.shop.example` does not match `shop.example`.
      for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1)) {
        found.push(...(bySuffix.get(host.slice(dot)) ?? []))
      }
      return found
    },
  }
}

/** The URL with another host; scheme, port and path stay. */
export const urlAtHost = (url: string, host: string): string =>
  url.replace(/^(https?:\/\/)(?:\[[^\]]*\]|[^/:?#]*)/i, (_, scheme: string) => `${scheme}${host}`)
