import type { Readable } from 'node:stream'
import { Cache } from '../src/cache/cache.ts'
import { createPartitions } from '../src/cache/cache-key.ts'
import type { Clock } from '../src/clock.ts'
import type { Config, SiteConfig } from '../src/config/config.ts'
import { ConfigSnapshot } from '../src/exchange/config-snapshot.ts'
import { type HandleDeps, handle } from '../src/exchange/handle.ts'
import { arrived } from '../src/exchange/request-context.ts'
import type { Service } from '../src/exchange/service.ts'
import { createWritesInFlight } from '../src/exchange/writes-in-flight.ts'
import { startEmbedded } from '../src/gateway/embedded-upstreams.ts'
import { checkConfig } from '../src/gateway/load-config.ts'
import { type BuiltService, buildService, closeServices } from '../src/gateway/snapshot/build-service.ts'
import { unlimited } from '../src/http/bounds/byte-budget.ts'
import { headerValue } from '../src/http/headers/header-lines.ts'
import { Redaction } from '../src/http/redaction.ts'
import { createMetrics } from '../src/observability/metrics.ts'
import { descriptionLabels } from '../src/wordpress/tags/description-labels.ts'

/** What came back: all that a reader could tell an old state by. */
export type TraceResponse = { readonly status: number; readonly text: string; readonly total: string }

/** `handle`, the cache and the contract as in the product, without sockets in front and with a separate clock. */
export type TraceGateway = {
  ask(method: string, target: string, content?: string): Promise<TraceResponse & { readonly hit: boolean }>
  readonly upstreamRequests: number
  /** The same without a gateway. */
  direct(target: string): Promise<TraceResponse>
  close(): Promise<void>
}

const root = '/index.php/site-json'
const publicUrl = 'http://127.0.0.1:8080'
const editor = `Basic ${Buffer.from('admin:trellis-demo').toString('base64')}`

/** The neutral names on both sides, so that the responses can be compared byte for byte. */
const configText = (target: string): string => `
services:
  site:
    contract: site
    mount: ${root}
    names: same
    upstream: { targets: ['${target}'], basePath: ${root} }
`

const configOf = async (target: string): Promise<{ readonly config: Config; readonly site: SiteConfig }> => {
  const checked = await checkConfig(configText(target), {})
  if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
  const [site] = checked.config.services
  if (site?.contract !== 'site') throw new Error('no site')
  return { config: checked.config, site }
}

const read = async (content: Buffer | Readable | undefined): Promise<string> => {
  if (content === undefined || Buffer.isBuffer(content)) return content?.toString() ?? ''
  const chunks: Buffer[] = []
  for await (const chunk of content) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** Counts upstream requests, and waits until none is in flight. */
const counted = (service: Service) => {
  const count = { requests: 0, pending: new Set<Promise<unknown>>() }
  const { upstream } = service
  const watched: Service = {
    ...service,
    upstream: {
      ...upstream,
      request: (request) => {
        count.requests += 1
        const response = upstream.request(request)
        const settled = response.then(
          () => undefined,
          () => undefined,
        )
        count.pending.add(settled)
        void settled.then(() => count.pending.delete(settled))
        return response
      },
    },
  }
  return { service: watched, count }
}

/** Comments, terms and users are in no contract: the gateway learns them from the site's own index. */
const untilLearned = async (service: Service): Promise<void> => {
  for (let tries = 0; service.contract.find('GET', '/site/v2/comments').kind !== 'found'; tries += 1) {
    if (tries === 500) throw new Error('the routes of the site were not learned')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** Starts the embedded site and the gateway in front of it. */
export const startTraceGateway = async (clock: Clock): Promise<TraceGateway> => {
  const embedded = await configOf('embedded')
  const site = await startEmbedded(embedded.site, embedded.config.limits, publicUrl)
  if (site === undefined) throw new Error('no embedded site')
  const { config, site: service } = await configOf(site.origin)
  const metrics = createMetrics({
    descriptionLabels,
    configHash: 'trace',
    version: 'trace',
    processMetrics: false,
  })
  const redaction = new Redaction()
  const cache = new Cache({
    maxHeapBytes: Number.POSITIVE_INFINITY,
    ...config.cache,
    compression: { codings: [], minBytes: 0 },
    budget: () => unlimited,
    clock,
    redaction,
    report: () => {},
  })
  const context: HandleDeps = {
    clock,
    finished: () => {},
    report: () => {},
    failed: () => {},
    cache,
    writes: createWritesInFlight(),
    budget: () => unlimited,
    partitionOf: createPartitions(),
    forwarding: { via: 'trellis-trace' },
    limits: undefined,
    compress: undefined,
    overload: undefined,
    batchOf: () => built.batch?.handle,
    watches: [],
    spans: undefined,
  }
  const built: BuiltService = await buildService(service, {
    config,
    publicUrl,
    clock,
    metrics,
    budget: () => unlimited,
    mayRemember: () => true,
    redaction,
  })
  await untilLearned(built.service)
  const watched = counted(built.service)
  const snapshot = new ConfigSnapshot([watched.service])
  const { signal } = new AbortController()

  return {
    ask: async (method, target, content) => {
      const at = target.indexOf('?')
      const body = content === undefined ? undefined : Buffer.from(content)
      const exchange = arrived({
        id: 'trace',
        origin: 'client',
        client: { address: '127.0.0.1', protocol: 'http', viaTrustedProxy: false },
        snapshot,
        service: watched.service,
        request: {
          method,
          target: `${root}${target}`,
          headers:
            body === undefined
              ? { host: '127.0.0.1:8080' }
              : {
                  host: '127.0.0.1:8080',
                  authorization: editor,
                  'content-type': 'application/json',
                  'content-length': String(body.length),
                },
          content: body,
          signal,
        },
        path: at === -1 ? target : target.slice(0, at),
        query: at === -1 ? '' : target.slice(at + 1),
      })
      const response = await handle(context, exchange)
      const text = await read(response.content)
      // Background validations end within the moment in which they began: the clock moves between requests only.
      await Promise.all(watched.count.pending)
      const { cache: how } = exchange.record
      const total = headerValue(response.headers, 'x-wp-total') ?? ''
      return { status: response.status, text, total, hit: how === 'hit' || how === 'stale' }
    },
    get upstreamRequests() {
      return watched.count.requests
    },
    direct: async (target) => {
      const response = await fetch(`${site.origin}${root}${target}`)
      return {
        status: response.status,
        text: await response.text(),
        total: response.headers.get('x-wp-total') ?? '',
      }
    },
    close: async () => {
      await closeServices([built], [])
      cache.close()
      await site.close()
    },
  }
}
