import type { Config } from './config.ts'

/** URLs of collectors carry API keys in the query or as user information: both are hidden. */
const withoutKeys = (text: string): string => {
  if (text === '') return ''
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname}${search === '' ? '' : '?[redacted]'}`
}

const shown = (key: string, value: unknown): unknown => {
  if (key === 'otlpUrl' && typeof value === 'string') return withoutKeys(value)
  if (key === 'match' && typeof value === 'object' && value !== null && 'text' in value) return value.text
  return value
}

/** The configuration as plain data: secrets hidden, cache rules as they were written. */
export const redactedConfig = (config: Config): unknown => JSON.parse(JSON.stringify(config, shown))
