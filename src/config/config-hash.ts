import { createHash } from 'node:crypto'
import type { Config } from './config.ts'
import { redactedConfig } from './redacted-config.ts'

const sorted = (_key: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value

/**
 * Sixteen hexadecimal digits that tell configurations apart, the same for the same meaning however it is written.
 * Secrets have no part in it: a short one could be guessed from a hash that everyone who scrapes can read.
 */
export const configHash = (config: Config): string =>
  createHash('sha256')
    .update(JSON.stringify(redactedConfig(config), sorted))
    .digest('hex')
    .slice(0, 16)
