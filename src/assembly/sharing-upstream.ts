import type { Service } from '../pipeline/service.ts'
import type { BuiltService } from './build-service.ts'

const find = (built: readonly BuiltService[], name: string): readonly Service[] => {
  const writing = built.find(({ config }) => config.name === name)
  const servers = new Set(writing?.way.servers)
  return built
    .filter((one) => one !== writing && one.config.contract !== 'open')
    .filter(({ way }) => way.servers.some((server) => servers.has(server)))
    .map(({ service }) => service)
}

/** Found once for each configuration: every write asks. */
const known = new WeakMap<readonly BuiltService[], Map<string, readonly Service[]>>()

/**
 * The other services that ask one of the same servers and hold answers which a write through this one may make wrong:
 * a WordPress behind its interface and, for its pages and wp-admin, behind an open service. What an open service holds
 * is invalidated by targets and tags of its own (RFC 9111 §4.4).
 */
export const sharingUpstream = (built: readonly BuiltService[], name: string): readonly Service[] => {
  const found = known.get(built) ?? new Map<string, readonly Service[]>()
  known.set(built, found)
  const services = found.get(name) ?? find(built, name)
  found.set(name, services)
  return services
}
