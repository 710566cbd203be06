import type { BuiltService } from './build-service.ts'

/** Services of which no answer is to be expected. */
export const servicesDown = (built: readonly BuiltService[]): readonly string[] =>
  built.filter(({ service }) => service.upstream.snapshot().down).map(({ service }) => service.name)
