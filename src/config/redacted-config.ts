import type { Config } from './config.ts'

/** The configuration as plain data for people: secrets hidden, cache rules as they were written. */
export const redactedConfig = (config: Config): unknown =>
  JSON.parse(
    JSON.stringify(config, (key, value: unknown) =>
      key === 'match' && typeof value === 'object' && value !== null && 'text' in value ? value.text : value,
    ),
  )
