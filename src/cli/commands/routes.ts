import type { CliPorts, ExitReason } from '../cli-ports.ts'
import type { JsonOption } from '../options.ts'
import { configName, type Loaded } from '../read-config.ts'
import { driftText, jsonText, printable, textTable } from '../texts.ts'

export type RoutesOptions = JsonOption & {
  /** Compares with the upstreams instead. */
  readonly drift?: boolean
  /** Adds the routes that upstreams announce. */
  readonly upstreams?: boolean
}

export const routes = async (
  ports: CliPorts,
  { config, file }: Loaded,
  { upstreams = false, json = false }: RoutesOptions,
): Promise<ExitReason> => {
  const { lines, unread, refused } = await ports.describeRoutes(config, upstreams)
  if (json) {
    ports.stdout.write(jsonText({ routes: lines, unread, refused }))
    return unread.length === 0 ? 'ok' : 'indexUnread'
  }
  const hasHosts = lines.some(({ hosts }) => hosts.length > 0)
  const hasResources = lines.some(({ resource }) => resource !== undefined)
  const cells = lines.map(({ method, hosts, path, service, cached, batchable, source, resource = '-' }) => [
    method,
    ...(hasHosts ? [hosts.length === 0 ? '*' : hosts.join(',')] : []),
    path,
    service,
    cached,
    batchable ? 'yes' : '-',
    ...(upstreams ? [source] : []),
    ...(hasResources ? [resource] : []),
  ])
  const header = [
    'METHOD',
    ...(hasHosts ? ['HOSTS'] : []),
    'PATH',
    'SERVICE',
    'CACHED',
    'BATCHABLE',
    ...(upstreams ? ['SOURCE'] : []),
    ...(hasResources ? ['RESOURCE'] : []),
  ]
  ports.stdout.write(printable(textTable([header, ...cells])))
  for (const { service, text } of refused)
    ports.stderr.write(printable(`${configName(file)}: warning: upstream of ${service}: ${text}\n`))
  for (const { service, reason } of unread) {
    ports.stderr.write(
      `${configName(file)}: upstream of ${service}: no routes learned, the index could not be read: ${reason}\n`,
    )
  }
  return unread.length === 0 ? 'ok' : 'indexUnread'
}

export const drift = async (
  ports: CliPorts,
  { config }: Loaded,
  { json = false }: JsonOption,
): Promise<ExitReason> => {
  const reports = await ports.driftReport(config)
  ports.stdout.write(json ? jsonText({ services: reports }) : driftText(reports))
  if (reports.some(({ outcome }) => outcome.kind === 'unread')) return 'indexUnread'
  const differs = reports.some(
    ({ outcome }) => outcome.kind === 'compared' && outcome.differences.some(({ matters }) => matters),
  )
  return differs ? 'drift' : 'ok'
}
