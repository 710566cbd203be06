import type { Dispatcher } from 'undici'

type Fields = Dispatcher.DispatchOptions['headers']

const isHost = (name: string): boolean => name.toLowerCase() === 'host'

const pairsOf = (fields: Iterable<unknown> | object): [string, unknown][] => {
  if (Array.isArray(fields)) {
    const pairs: [string, unknown][] = []
    for (let i = 0; i < fields.length; i += 2) pairs.push([String(fields[i]), fields[i + 1]])
    return pairs
  }
  return Symbol.iterator in fields ? [...(fields as Iterable<[string, unknown]>)] : Object.entries(fields)
}

/**
 * The fields without Host: the target's own is sent instead (RFC 9112 §3.2). A caller such as reply-from names the
 * placeholder there, and undici would take it for the name that the certificate must show.
 */
export const withoutHost = (fields: Fields): Record<string, string | string[]> => {
  const kept: Record<string, string | string[]> = Object.create(null)
  if (fields === null || fields === undefined) return kept
  for (const [name, value] of pairsOf(fields)) {
    if (!isHost(name) && value !== undefined) kept[name] = value as string | string[]
  }
  return kept
}
