import { logLinesOf } from '../../support/log-lines-of.ts'
import type { Instances } from './instances.ts'

const told = [
  'trust-lost',
  'trust-regained',
  'memory-dropped',
  'cut-off',
  'shared-connection',
  'shared-trouble',
  'worker-ended',
  'worker-ready',
] as const

const latest = 24

/** The faults, log lines of instances and the state of the ledger, which explain a stale read. */
export const historyOf = async ({ all, redis }: Instances, faults: readonly string[]): Promise<string> => {
  const lines = all.flatMap(({ gateway: { origin, program } }) =>
    told
      .flatMap((message) => logLinesOf(program, message))
      .map(({ time, level: _, ...facts }) => `${time} ${origin} ${JSON.stringify(facts)}`)
      .sort()
      .slice(-latest),
  )
  const store = await Promise.all(
    (['ledger', 'members'] as const).map((name) => redis.command('HGETALL', `{trellis}:${name}`)),
  ).catch((error: unknown) => [String(error)])
  return [
    ...[...lines, ...faults.slice(-latest)].sort(),
    `${new Date().toISOString()} ledger: ${store.join('').replaceAll(/[\r\n]+/g, ' ')}`,
  ].join('\n')
}
