import type { BuiltService } from './build-service.ts'

/** Services no target of which takes requests: the breaker is open, or each target failed its checks or was ejected. */
export const servicesDown = (built: readonly BuiltService[]): readonly string[] =>
  built
    .filter(({ service }) => {
      const { breaker, targets } = service.upstream.snapshot()
      return breaker === 'open' || targets.every(({ state }) => state !== 'healthy')
    })
    .map(({ service }) => service.name)
