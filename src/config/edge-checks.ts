import type { Config } from './config.ts'
import type { Path, UnplacedFault } from './fault.ts'

const when = (broken: boolean, path: Path, message: string): UnplacedFault[] =>
  broken ? [{ path, message, at: 'value' }] : []

const rateLimitFaults = ({ rateLimits, services }: Config): UnplacedFault[] =>
  rateLimits.flatMap(({ name, service }, index) => [
    ...when(
      !services.some((one) => one.name === service),
      ['rateLimits', index, 'service'],
      'is not the name of a service',
    ),
    ...when(
      rateLimits.findIndex((one) => one.name === name) !== index,
      ['rateLimits', index, 'name'],
      'is the name of another limit already',
    ),
  ])

/** Faults of the public port's settings that show only when several are seen together. */
export const edgeFaults = (config: Config): UnplacedFault[] => [
  ...when(
    config.cors.credentials && config.cors.origins.includes('*'),
    ['cors', 'credentials'],
    'goes with named origins only: browsers refuse credentials for "*" (Fetch standard, CORS check)',
  ),
  ...when(
    config.limits.requestTimeoutMs > 0 && config.limits.headersTimeoutMs > config.limits.requestTimeoutMs,
    ['limits', 'headersTimeout'],
    'must be at most limits.requestTimeout: the part cannot be longer than the whole',
  ),
  ...when(
    config.overload.intervalMs > 0 && config.overload.intervalMs < 100,
    ['overload', 'interval'],
    'must be 0s or at least 100ms: in a shorter time too little is measured',
  ),
  ...rateLimitFaults(config),
]
