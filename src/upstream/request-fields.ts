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
 * The fields with the Host that is configured; '' = none, then undici sends the target's own (RFC 9112 §3.2).
 * A caller such as reply-from names the placeholder there.
 */
export const withHost = (fields: Fields, host: string): Record<string, string | string[]> => {
  const kept: Record<string, string | string[]> = Object.create(null)
  if (host !== '') kept['host'] = host
  if (fields === null || fields === undefined) return kept
  for (const [name, value] of pairsOf(fields)) {
    if (!isHost(name) && value !== undefined) kept[name] = value as string | string[]
  }
  return kept
}
