import { systemClock } from '../clock.ts'
import type { Config, ServiceConfig } from '../config/config.ts'
import {
  homeFinding,
  indexFinding,
  isIndex,
  loopFinding,
  otherRoots,
  type Reached,
  type Seen,
  type SiteFinding,
} from '../discovery/site-findings.ts'
import { GatewayError } from '../errors.ts'
import { unlimited } from '../http/byte-budget.ts'
import { fieldValue } from '../http/fields.ts'
import { completed } from '../pipeline/invalidate-write.ts'
import { createUpstream } from '../upstream/upstream.ts'
import { serverOf } from './server-of.ts'
import { upstreamOptions } from './upstream-options.ts'

/** What does not fit between one service and its upstream. */
export type UpstreamFinding = SiteFinding & { readonly service: string }

const mostBytes = 8 * 1024 * 1024
const askMs = 5_000
/** For all that is asked of one service. */
const serviceMs = 15_000

const withoutRoot = (path: string): string => (path === '/' ? '' : path)

const reasonOf = (error: unknown): string => {
  if (!(error instanceof GatewayError)) return 'no response in time'
  const { cause } = error
  return cause instanceof Error && 'code' in cause ? String(cause.code) : error.message
}

type Ask = (target: string) => Promise<Seen>

/** Hands out GETs to a service's upstream, sent as those of a client would be: no redirect is followed. */
const asking = async <Value>(
  service: ServiceConfig,
  targets: readonly string[],
  config: Config,
  use: (ask: Ask) => Promise<Value>,
): Promise<Value> => {
  const { publicUrl, limits } = config
  const options = upstreamOptions(service, targets, publicUrl, limits)
  const upstream = createUpstream(
    { ...options, health: { ...options.health, path: '' } },
    { clock: systemClock, random: Math.random, report: () => {} },
  )
  const { host, protocol } = new URL(publicUrl)
  const whole = AbortSignal.timeout(serviceMs)
  const forwarded = ['x-forwarded-host', host, 'x-forwarded-proto', protocol.slice(0, -1)]
  const ask: Ask = async (target) => {
    try {
      const response = await upstream.forward({
        method: 'GET',
        target,
        fields: ['accept-encoding', 'identity', 'user-agent', 'trellis', ...forwarded],
        content: undefined,
        signal: AbortSignal.any([whole, AbortSignal.timeout(askMs)]),
      })
      const { status, fields, content } = await completed(response, mostBytes, unlimited)
      if (content !== undefined && !Buffer.isBuffer(content)) content.destroy()
      return {
        kind: 'answer',
        status,
        location: fieldValue(fields, 'location'),
        content: Buffer.isBuffer(content) ? content : Buffer.alloc(0),
      }
    } catch (error) {
      return { kind: 'none', reason: reasonOf(error) }
    }
  }
  try {
    return await use(ask)
  } finally {
    await upstream.close()
  }
}

const reachedBy = ({ publicUrl }: Config, { mount, upstream }: ServiceConfig): Reached => ({
  publicUrl: publicUrl.replace(/\/$/, ''),
  mount,
  host: upstream.host,
})

const ofSite = async (ask: Ask, service: ServiceConfig, config: Config): Promise<SiteFinding[]> => {
  const basePath = withoutRoot(service.upstream.basePath)
  const seen = await ask(`${basePath}/`)
  const found: string[] = []
  // Only an answer without an index leaves the question where the index is.
  if (indexFinding(basePath, seen, [])?.kind === 'no-wordpress') {
    for (const root of otherRoots(basePath)) {
      if (found.length === 0 && isIndex(await ask(`${root}/`))) found.push(root)
    }
  }
  return [indexFinding(basePath, seen, found), homeFinding(reachedBy(config, service), seen)].filter(
    (finding) => finding !== undefined,
  )
}

const ofPages = async (ask: Ask, service: ServiceConfig, config: Config): Promise<SiteFinding[]> => {
  const finding = loopFinding(
    reachedBy(config, service),
    await ask(`${withoutRoot(service.upstream.basePath)}/`),
  )
  return finding === undefined ? [] : [finding]
}

const targetsOf = ({ upstream: { targets } }: ServiceConfig): readonly string[] =>
  targets === 'embedded' ? [] : targets

/**
 * Asks the upstreams of the site services, and the front pages of open services on the same servers, a few GETs each, and
 * says how they do not fit the configuration. Never throws; ends in bounded time.
 */
export const upstreamFindings = async (config: Config): Promise<readonly UpstreamFinding[]> => {
  const sites = config.services.filter(({ contract }) => contract === 'site')
  const servers = new Set(sites.flatMap(targetsOf).map(serverOf))
  const concerned = config.services.filter(
    (service) =>
      targetsOf(service).length > 0 &&
      (service.contract === 'site' ||
        (service.contract === 'open' && targetsOf(service).some((origin) => servers.has(serverOf(origin))))),
  )
  const findings = await Promise.all(
    concerned.map(async (service) => {
      const look = service.contract === 'site' ? ofSite : ofPages
      const found = await asking(service, targetsOf(service), config, (ask) => look(ask, service, config))
      return found.map((finding) => ({ service: service.name, ...finding }))
    }),
  )
  return findings.flat()
}

/** One line a finding. */
export const warnOf = (
  log: { warn(facts: object, message: string): void },
  { service, kind, text }: UpstreamFinding,
): void => log.warn({ service, finding: kind, detail: text }, 'upstream-finding')
