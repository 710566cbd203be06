import type { ServiceConfig } from '../config/config.ts'
import { matchesWrite } from '../config/rule-match.ts'
import type { Service } from '../pipeline/service.ts'

/** From `cache.harmlessWrites`; undefined where it is empty. */
export const harmlessWritesOf = ({ cache }: Pick<ServiceConfig, 'cache'>): Service['harmlessWrite'] => {
  const { harmlessWrites } = cache
  if (harmlessWrites.length === 0) return undefined
  return (method, path, query) =>
    harmlessWrites.find((match) => matchesWrite(match, method, path, query))?.query.map(({ name }) => name)
}
