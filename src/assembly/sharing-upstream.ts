import type { Service } from '../pipeline/service.ts'
import type { BuiltService } from './build-service.ts'

/**
 * The other services that ask one of the same servers and hold answers which a write through this one may make wrong:
 * a WordPress behind its interface and, for its pages and wp-admin, behind an open service. What an open service holds
 * is invalidated by targets and tags of its own (RFC 9111 §4.4).
 */
const othersOf = (writing: BuiltService, built: readonly BuiltService[]): readonly Service[] => {
  const servers = new Set(writing.way.servers)
  return built
    .filter((one) => one !== writing && one.config.contract !== 'open')
    .filter(({ way }) => way.servers.some((server) => servers.has(server)))
    .map(({ service }) => service)
}

/** Of services by their names, found once for each configuration: every write asks. None for one that is no longer there. */
export const sharingUpstream = (built: readonly BuiltService[]): ((name: string) => readonly Service[]) => {
  const found = new Map(built.map((one) => [one.config.name, othersOf(one, built)]))
  return (name) => found.get(name) ?? []
}
