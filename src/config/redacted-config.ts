import { isJsonObject } from '../http/json-text.ts'
import type { Config } from './config.ts'
import { durationText, type StatusRange, sizeText, statusRangesText } from './quantities.ts'

/** URLs may carry keys in the query or as user information: both are hidden. A fragment is sent to nobody. */
const withoutKeys = (text: string): string => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.search === '' && url.username === '' && url.password === '')) return text
  return `${url.protocol}//${url.host}${url.pathname}${url.search === '' ? '' : '?[redacted]'}`
}

const shown = (key: string, value: unknown): unknown => {
  if (typeof value === 'string' && /^[a-z][a-z\d+.-]*:\/\//i.test(value)) return withoutKeys(value)
  if (key === 'match' && typeof value === 'object' && value !== null && 'text' in value) return value.text
  return value
}

/** The configuration as plain data in the names of the code: secrets hidden, cache rules as they were written. */
export const redactedConfig = (config: Config): unknown => JSON.parse(JSON.stringify(config, shown))

type Section = Readonly<Record<string, unknown>>

const accessAsWritten = (value: unknown): unknown => {
  const { requests, client, ...members } = value as Config['log']['access']
  if (requests === 'none') return false
  return { requests, client: client === 'full' ? client : client === 'network', ...members }
}

/** Settings whose value has another form in the file than in the code. */
const forms: Readonly<Record<string, (value: unknown) => unknown>> = {
  'log.access': accessAsWritten,
  minVersion: (version) => String(version).replace('TLSv', ''),
  'health.expect': (ranges) => statusRangesText(ranges as readonly StatusRange[]),
  'upstream.targets': (targets) => (targets === 'embedded' ? ['embedded'] : targets),
}

const asWritten = (section: string, key: string, value: unknown): readonly [name: string, value: unknown] => {
  if (typeof value === 'number') {
    if (key.endsWith('Ms')) return [key.slice(0, -2), durationText(value)]
    return [key, key.endsWith('Bytes') ? sizeText(value) : value]
  }
  const form = forms[`${section}.${key}`] ?? forms[key]
  if (form !== undefined) return [key, form(value)]
  if (Array.isArray(value))
    return [key, value.map((item) => (isJsonObject(item) ? written(key, item) : item))]
  return [key, isJsonObject(value) ? written(key, value) : value]
}

const written = (name: string, section: Section): Section =>
  Object.fromEntries(Object.entries(section).map(([key, value]) => asWritten(name, key, value)))

/** The configuration in force in the names and units of the file, complete with its defaults; secrets hidden. */
export const shownConfig = (config: Config): unknown => {
  const { services, ...rest } = redactedConfig(config) as Section & { readonly services: readonly Section[] }
  const entries = services.map(({ name, ...service }) => [String(name), written('', service)] as const)
  return { ...written('', rest), services: Object.fromEntries(entries) }
}
