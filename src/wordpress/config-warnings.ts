import { type ConfigWarning, interfacesBehind, type ServiceConfig } from '../config/config.ts'
import {
  coversRule,
  type HarmlessWrite,
  isPattern,
  matchesWrite,
  type RuleMatch,
  type WriteMatch,
} from '../config/rule-match.ts'
import { coreRows } from './routes/core-rows.ts'
import { rootOf } from './routes/harmless-writes.ts'
import { siteRows } from './routes/route-table.ts'

/** A route of the contract as a pattern, in the names of the service. */
const patternOf = (template: string, names: string, method: string): RuleMatch => {
  const path = names === 'same' ? template.replace(/^\/site\//, '/wp/') : template
  const segments = path
    .split('/')
    .slice(1)
    .map((segment) => segment.replace(/\{[^}]*\}/g, '*'))
  return { text: path, methods: [method], segments }
}

/** The first route of the contract that writes and that the pattern covers, or is a part of. */
const knownWrite = (service: ServiceConfig, match: RuleMatch): string | undefined => {
  if (service.contract !== 'site') return undefined
  const { names } = service
  return [...siteRows, ...coreRows].find(({ template, endpoints }) =>
    match.methods.some((method) => {
      if (!endpoints.some(({ methods }) => methods.some((candidate) => candidate === method))) return false
      const pattern = patternOf(template, names, method)
      return coversRule(match, pattern) || coversRule(pattern, { ...match, methods: [method] })
    }),
  )?.template
}

/** Requests of WordPress, of WooCommerce and its interface that write. */
const writingForms = [
  ...['/wp-admin/admin-ajax.php', '/wp-admin/post.php', '/wp-comments-post.php', '/wp-login.php'],
  ...['/xmlrpc.php', '/?wc-ajax=checkout', '/wp-json/wc/store/v1/checkout', '/wp-json/wp/v2/posts'],
]

/** The first of them that the pattern covers. */
const knownForm = (match: WriteMatch): string | undefined =>
  writingForms.find((target) => {
    const [path = '', query = ''] = target.split('?')
    return matchesWrite(match, 'POST', path, query)
  })

/** What an entry of `harmlessWrites` does that its author may not expect. */
const unexpected = (
  service: ServiceConfig,
  write: HarmlessWrite,
  services: readonly ServiceConfig[],
): string | undefined => {
  const interfaces = interfacesBehind(service, services)
  if (!isPattern(write))
    return interfaces.some((path) => rootOf(path) !== undefined)
      ? undefined
      : 'has no effect: no service with contract: site or graphql has this upstream, with a basePath that ends in /wp-json or /graphql'
  const route = knownWrite(service, write) ?? (interfaces.length === 0 ? undefined : knownForm(write))
  return (
    route && `covers ${route}, which writes: after such a write, readers get older data until the ttl ends`
  )
}

/** Entries of `harmlessWrites` without effect, and those that cover a request which writes. */
export function* harmlessWriteWarnings(
  service: ServiceConfig,
  services: readonly ServiceConfig[],
): Iterable<ConfigWarning> {
  const path = `services.${service.name}`
  for (const [index, write] of service.cache.harmlessWrites.entries()) {
    const message = unexpected(service, write, services)
    if (message !== undefined) yield { path: `${path}.cache.harmlessWrites[${index}]`, message }
  }
}
