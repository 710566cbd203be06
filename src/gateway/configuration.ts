import type { ReloadOutcome } from '../admin/operator.ts'
import type { Config } from '../config/config.ts'
import type { ConfigResult } from '../config/load.ts'
import { type GatewayParts, lastingPartsOf } from './gateway-parts.ts'
import { createReload, logReload } from './snapshot/reload.ts'
import { type BuiltSnapshot, buildSnapshot, declaredServices } from './snapshot/snapshot.ts'

const noReload = async (): Promise<ConfigResult> => {
  throw new TypeError('this gateway was started without a configuration that can be read again')
}

/** Makes a configuration snapshot handle the requests from now on, synchronously. */
const putInForce = (
  { current, publicSide, storage, observation }: GatewayParts,
  next: BuiltSnapshot,
): void => {
  current.replaceBy(next)
  publicSide.port.use()
  storage.downstreams.use(next.built.map(({ service }) => service))
  observation.metrics.setConfig({ hash: next.hash, ...declaredServices(next) })
}

const reportReload = ({ clock, observation, status }: GatewayParts, outcome: ReloadOutcome): void => {
  status.reloaded(outcome)
  observation.metrics.observe.lifecycle({
    kind: 'reloaded',
    outcome: outcome.kind,
    atSeconds: clock.now() / 1000,
  })
  logReload(observation.logger, outcome)
}

/** Builds the first configuration snapshot; returns the function that replaces it. */
export const startConfiguration = async (
  parts: GatewayParts,
  publicUrl: string,
): Promise<() => Promise<ReloadOutcome>> => {
  const { config, current, feeds, observation, options, status, storage } = parts
  const lasting = lastingPartsOf(parts, publicUrl)
  const build = (next: Config, hash: string, last: BuiltSnapshot | undefined) =>
    buildSnapshot({ config: next, hash }, lasting, last)
  putInForce(parts, await build(config, options.configHash, undefined))
  return createReload({
    cache: storage.cache,
    current: () => current.get(),
    readConfig: options.readConfig ?? noReload,
    build,
    replace: (next) => {
      putInForce(parts, next)
      feeds.useBuilt(next.built)
      status.forgetIssues()
    },
    broadcast: async (invalidations) =>
      invalidations.length === 0 ? undefined : storage.broadcast.send(invalidations),
    report: (outcome) => reportReload(parts, outcome),
    ended: (last) => current.ended(last),
    endingFailed: (cause) => observation.logger.error({ err: cause }, 'last-configuration-not-ended'),
  })
}
