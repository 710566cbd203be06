import type { Config } from './config/config.ts'
import { type Gateway, startGateway } from './gateway.ts'

/** A gateway that tries a configuration: on ports of its own, for this machine alone, and without a word. */
export const startTrial = (config: Config, version: string): Promise<Gateway> => {
  const place = { host: '127.0.0.1', port: 0 }
  const trial: Config = {
    ...config,
    log: { ...config.log, level: 'silent' },
    drain: { ...config.drain, delayMs: 0, timeoutMs: 1_000 },
    listen: { ...config.listen, ...place },
    admin: { ...config.admin, ...place },
  }
  return startGateway(trial, { configHash: '', version })
}
