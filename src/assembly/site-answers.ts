import { createBatch } from '../batch/batch.ts'
import type { BatchEvent } from '../batch/events.ts'
import { createPlaces, type Places } from '../batch/places.ts'
import { createSplitter, type Splitter } from '../batch/splitter.ts'
import type { Clock } from '../clock.ts'
import type { SiteConfig } from '../config/config.ts'
import type { Discovery } from '../discovery/discovery.ts'
import type { DiscoveryDocument } from '../discovery/discovery-answer.ts'
import { GatewayError } from '../errors.ts'
import { requestField } from '../http/fields.ts'
import type { Answer, GatewayResponse } from '../http/message.ts'
import type { Received } from '../pipeline/exchange.ts'
import type { LocalAnswers, LocalRequest, Service } from '../pipeline/service.ts'
import { runChunk } from './batch-chunk.ts'
import { admitItem, batchFlow, runItem, sendAlone } from './batch-items.ts'

const asResponse = ({ fields, content }: DiscoveryDocument): GatewayResponse => ({
  kind: 'response',
  status: 200,
  fields: [...fields, 'Content-Length', String(content.length)],
  content,
})

/** The schema that only the upstream knows, or what the table says when the upstream says nothing. */
const askedOptions = async (ask: () => Answer, fallback: DiscoveryDocument): Promise<GatewayResponse> => {
  try {
    const outcome = await ask()
    if (outcome.kind === 'response' && outcome.status === 200) return outcome
    if (outcome.kind === 'response' && outcome.content !== undefined && !Buffer.isBuffer(outcome.content)) {
      outcome.content.destroy()
    }
  } catch (error) {
    if (!(error instanceof GatewayError) || error.facts.fault === 'client') throw error
  }
  return asResponse(fallback)
}

const isJson = (exchange: LocalRequest): exchange is LocalRequest & { readonly content: Buffer } =>
  Buffer.isBuffer(exchange.content) &&
  !(requestField(exchange.request.fields, 'content-type') ?? '').toLowerCase().includes('urlencoded')

export type SiteAnswersOptions = {
  readonly config: SiteConfig
  readonly publicRoot: string
  readonly discovery: Discovery
  readonly clock: Clock
  readonly report: (event: BatchEvent) => void
  /** The whole way, for the items of a batch. */
  run(exchange: Received): Answer
  /** Is what was read from the upstream before still known to be true? */
  mayRemember(): boolean
}

/** Writes to these, and to what no row lists, can change the site's identity or its routes. */
const describedBy: ReadonlySet<string> = new Set(['settings', 'plugins', 'themes', ''])

/** As WordPress has it; an upstream with a lower one refuses, and the items go one by one. */
const upstreamMaxItems = 25

/** Batches take at most this share of the upstream's concurrency, so that a single request finds room. */
const batchShare = 0.75

/** What all batches of a service share: how they are sent, and how much room they have together. */
const sharedByBatches = (
  { batch, upstream }: SiteConfig,
  clock: Clock,
): { readonly splitter: Splitter; readonly places: { readonly items: Places; readonly chunks: Places } } => {
  const splitter = createSplitter({
    mode: batch.split,
    concurrency: batch.concurrency,
    mostItems: upstreamMaxItems,
    // The head of its answer comes when all its items have run.
    mostChunkMs: upstream.timeouts.headersMs / 2,
    clock,
  })
  const room = Math.floor(upstream.maxConcurrent * batchShare)
  return {
    splitter,
    places: {
      items: createPlaces(() => room),
      chunks: createPlaces(() => Math.min(room, splitter.mostChunksAtOnce())),
    },
  }
}

/** What the gateway answers itself for a site: its documents, and the batch. */
export const siteAnswers = (options: SiteAnswersOptions): LocalAnswers => {
  const { config, discovery, publicRoot } = options
  const { splitter, places } = sharedByBatches(config, options.clock)
  const unknownNamespace = (): GatewayError => new GatewayError('no_route')
  return {
    index: async (exchange, row) => {
      const { query } = exchange
      if (!options.mayRemember()) discovery.invalidate()
      const answer =
        row.namespace === ''
          ? await discovery.index(query)
          : await discovery.namespaceIndex(row.namespace, query)
      switch (answer.kind) {
        case 'document':
          return asResponse(answer)
        case 'identity-unknown':
          throw new GatewayError('upstream_unreachable', {
            detail: "The site's own index has not been read yet.",
            retryAfterSeconds: 5,
          })
        case 'unknown-namespace':
          throw unknownNamespace()
      }
    },
    written: (collection) => {
      if (describedBy.has(collection)) discovery.invalidate()
    },
    options: (row, ask) => {
      const answer = discovery.options(row)
      return answer.kind === 'document' ? asResponse(answer) : askedOptions(ask, answer.fallback)
    },
    batch: async (exchange) => {
      const { service }: { service: Service } = exchange
      const batch = createBatch({
        maxItems: config.batch.maxItems,
        concurrency: config.batch.concurrency,
        deadlineMs: config.batch.deadlineMs,
        clock: options.clock,
        report: options.report,
        admit: (item) => admitItem(service, item, exchange.request.fields['authorization'] !== undefined),
        splitter,
        places,
        flow: batchFlow(exchange.client.address),
        dispatch: (item, signal) => runItem(options.run, exchange, item, signal, sendAlone(service.upstream)),
        dispatchChunk: (items, watch) => runChunk(options.run, exchange, items, watch),
      })
      // Integers beyond 2^53 survive in the text that the items are cut out of; a form has none.
      const text = isJson(exchange) ? exchange.content.toString() : undefined
      const { status, content } = await batch.run(exchange.arguments, exchange.request.signal, text)
      return {
        kind: 'response',
        status,
        fields: [
          ...['Content-Type', 'application/json; charset=UTF-8', 'X-Robots-Tag', 'noindex'],
          ...['Link', `<${publicRoot}/>; rel="https://api.w.org/"`, 'X-Content-Type-Options', 'nosniff'],
          ...['Allow', 'POST', 'Cache-Control', 'no-store', 'Content-Length', String(content.length)],
        ],
        content,
      }
    },
  }
}
