import type { Config } from './config.ts'
import { faultWhen, type UnplacedFault } from './fault.ts'

const rateLimitFaults = ({ rateLimits, services }: Config): UnplacedFault[] =>
  rateLimits.flatMap(({ name, service }, index) => [
    ...faultWhen(
      !services.some((one) => one.name === service),
      ['rateLimits', index, 'service'],
      'is not the name of a service',
    ),
    ...faultWhen(
      rateLimits.findIndex((one) => one.name === name) !== index,
      ['rateLimits', index, 'name'],
      'another limit has the same name',
    ),
  ])

/** Faults of the public port's settings that show only when several are seen together. */
export const edgeFaults = (config: Config): UnplacedFault[] => [
  ...faultWhen(
    config.cors.credentials && config.cors.origins.includes('*'),
    ['cors', 'credentials'],
    'requires origins by name: browsers refuse credentials for "*" (Fetch standard, CORS check)',
  ),
  ...faultWhen(
    config.limits.requestTimeoutMs > 0 && config.limits.headersTimeoutMs > config.limits.requestTimeoutMs,
    ['limits', 'headersTimeout'],
    'must be at most limits.requestTimeout, which includes it',
  ),
  ...faultWhen(
    config.limits.bufferedBytes < 2 * config.limits.bodyBytes,
    ['limits', 'bufferedBytes'],
    'must be at least twice limits.bodyBytes, because one client gets half of it and a body is read completely',
  ),
  ...config.services.flatMap((service) =>
    faultWhen(
      service.contract !== 'open' &&
        service.limits.bodyBytes !== config.limits.bodyBytes &&
        config.limits.bufferedBytes < 2 * service.limits.bodyBytes,
      ['services', service.name, 'limits', 'bodyBytes'],
      'must be at most half of limits.bufferedBytes, because one client gets half of it and a body is read completely',
    ),
  ),
  ...faultWhen(
    config.overload.intervalMs > 0 && config.overload.intervalMs < 100,
    ['overload', 'interval'],
    'must be 0s or at least 100ms, because a shorter interval measures too little',
  ),
  ...rateLimitFaults(config),
]
