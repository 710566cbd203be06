import { type FieldLines, withoutFields } from '../http/fields.ts'

const hostName: ReadonlySet<string> = new Set(['host'])

/** The fields with the Host that is configured; '' = none, then undici sends the target's own (RFC 9112 §3.2). */
export const withHost = (fields: FieldLines, host: string): string[] => {
  const kept = withoutFields(fields, hostName)
  return host === '' ? kept : ['host', host, ...kept]
}
