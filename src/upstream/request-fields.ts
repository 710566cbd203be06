import type { SentFields } from './relay-room.ts'

/** The fields with the Host that is configured; '' = none, then undici sends the target's own (RFC 9112 §3.2). */
export const withHost = (fields: SentFields, host: string): SentFields => {
  const kept: Record<string, string> = Object.create(null)
  if (host !== '') kept['host'] = host
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (name !== 'host' && value !== undefined) kept[name] = value
  }
  return kept
}
