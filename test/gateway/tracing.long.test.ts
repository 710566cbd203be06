import { afterEach, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'

type Value = { readonly stringValue?: string; readonly intValue?: number }
type Attribute = { readonly key: string; readonly value: Value }
type Span = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: readonly Attribute[]
  readonly status: { readonly code?: number }
}
type Export = {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[]
  }[]
}

/** An OTLP collector: takes JSON over HTTP at /v1/traces. */
const startCollector = async () => {
  const spans: Span[] = []
  const services = new Set<string>()
  const origin = await startOrigin(({ target, content }, wire) => {
    if (target === '/v1/traces') {
      const { resourceSpans } = JSON.parse(content.toString()) as Export
      for (const { resource, scopeSpans } of resourceSpans) {
        services.add(text(resource.attributes, 'service.name'))
        for (const scope of scopeSpans) spans.push(...scope.spans)
      }
    }
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{}' })
  })
  ends.push(() => origin.close())
  return { url: origin.origin, spans, services }
}

const text = (attributes: readonly Attribute[], key: string): string => {
  const value = attributes.find((attribute) => attribute.key === key)?.value
  return String(value?.stringValue ?? value?.intValue ?? '')
}

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const mount = '/index.php/site-json'

const start = async (
  tracing: Readonly<Record<string, unknown>>,
  script?: Script,
  trustedProxies: readonly string[] = ['127.0.0.1'],
): Promise<{
  gateway: TestGateway
  origin: Origin
  ask(path: string, init?: RequestInit): Promise<Response>
}> => {
  const origin = await startOrigin(script)
  ends.push(() => origin.close())
  const gateway = await startTestGateway({
    tracing,
    trustedProxies,
    services: {
      site: siteService(origin.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s' }] },
        upstream: { targets: [origin.origin], basePath: '/index.php/wp-json', retry: { attempts: 2 } },
      }),
    },
  })
  ends.push(() => gateway.close())
  const ask = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const response = await fetch(`${gateway.publicAddress}${mount}${path}`, init)
    await response.arrayBuffer()
    return response
  }
  return { gateway, origin, ask }
}

const traced = async (sampleRatio: number, script?: Script, trustedProxies?: readonly string[]) => {
  const collector = await startCollector()
  const started = await start(
    { otlpUrl: collector.url, sampleRatio, serviceName: 'edge-7' },
    script,
    trustedProxies,
  )
  /** Spans come in batches; going away sends the last one. */
  const finished = async (): Promise<readonly Span[]> => {
    await started.gateway.close()
    return collector.spans
  }
  return { ...started, collector, finished }
}

const traceId = '0af7651916cd43dd8448eb211c80319c'
const from = (flags: '00' | '01') => ({
  headers: { traceparent: `00-${traceId}-b7ad6b7169203331-${flags}`, tracestate: 'a=b' },
})

const childrenOf = (spans: readonly Span[], parent: Span | undefined): string[] =>
  spans.filter(({ parentSpanId }) => parentSpanId === parent?.spanId).map(({ name }) => name)

test('the trace of a trusted proxy goes on: server, validate, cache, upstream and attempt; the upstream gets its parent', async () => {
  const { ask, origin, finished, collector } = await traced(0)
  await ask('/site/v2/posts?per_page=2', from('01'))
  const spans = await finished()
  const named = (name: string): Span | undefined => spans.find((span) => span.name === name)
  const server = named('GET /site/v2/posts')
  expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]))
  expect(server).toMatchObject({ parentSpanId: 'b7ad6b7169203331', kind: 2 })
  expect(text(server?.attributes ?? [], 'http.route')).toBe('/site/v2/posts')
  expect(text(server?.attributes ?? [], 'http.response.status_code')).toBe('200')
  expect(text(server?.attributes ?? [], 'trellis.cache')).toBe('miss')
  expect(childrenOf(spans, server)).toEqual(['validate', 'cache'])
  expect(childrenOf(spans, named('cache'))).toEqual(['upstream'])
  expect(childrenOf(spans, named('upstream'))).toEqual(['GET'])
  expect(named('GET')?.kind).toBe(3)
  expect(text(named('GET')?.attributes ?? [], 'server.port')).toBe(String(origin.port))
  expect(origin.received[0]?.headers).toMatchObject({
    traceparent: `00-${traceId}-${named('upstream')?.spanId}-01`,
    tracestate: 'a=b',
  })
  expect(collector.services).toEqual(new Set(['edge-7']))
})

test('a hit has no upstream span; an exemplar leads from the metrics to its trace', async () => {
  const { ask, gateway, finished } = await traced(0)
  await ask('/site/v2/posts')
  await ask('/site/v2/posts', from('01'))
  const scrape = await fetch(`${gateway.adminAddress}/metrics`, {
    headers: { Accept: 'application/openmetrics-text' },
  })
  expect(await scrape.text()).toContain(`# {trace_id="${traceId}"}`)
  const spans = await finished()
  expect(spans.map(({ name }) => name).sort()).toEqual(['GET /site/v2/posts', 'cache', 'validate'])
})

test('a trace that the client does not record is forwarded unchanged and not recorded', async () => {
  const { ask, origin, finished } = await traced(1)
  await ask('/site/v2/posts', from('00'))
  expect(origin.received[0]?.headers['traceparent']).toMatch(new RegExp(`^00-${traceId}-[\\da-f]{16}-00$`))
  expect(await finished()).toEqual([])
})

test.each([
  [0, 0, 0],
  [0.5, 60, 140],
  [1, 200, 200],
])(
  'a client cannot have more than a share of %d of its requests recorded, whatever its traceparent says',
  async (ratio, min, max) => {
    const { ask, origin, finished } = await traced(ratio, undefined, [])
    for (let count = 0; count < 200; count += 1) await ask('/site/v2/posts', from('01'))
    // The trace is still the client's, and the upstream gets the recorded span as parent.
    expect(origin.received[0]?.headers['traceparent']).toMatch(
      new RegExp(`^00-${traceId}-[\\da-f]{16}-0[01]$`),
    )
    if (ratio === 0) expect(origin.received[0]?.headers['traceparent']).toMatch(/-00$/)
    const servers = (await finished()).filter(({ kind }) => kind === 2)
    expect(servers.length).toBeGreaterThanOrEqual(min)
    expect(servers.length).toBeLessThanOrEqual(max)
  },
)

test.each([
  [0, 0],
  [1, 20],
])('of the traces that begin here a share of %d is recorded', async (ratio, expected) => {
  const { ask, finished } = await traced(ratio)
  for (let count = 0; count < 20; count += 1) await ask('/site/v2/posts')
  const servers = (await finished()).filter(({ kind }) => kind === 2)
  expect(servers).toHaveLength(expected)
  expect(new Set(servers.map((span) => span.traceId)).size).toBe(expected)
})

test('a second attempt is its own span and says so; a failure is marked', async () => {
  const { ask, finished } = await traced(1, (_, wire, count) =>
    count === 1 ? wire.reset() : wire.respond({ status: 500, content: '{}' }),
  )
  await ask('/site/v2/posts')
  const spans = await finished()
  const attempts = spans.filter(({ kind }) => kind === 3)
  expect(attempts.map(({ attributes }) => text(attributes, 'http.request.resend_count'))).toEqual(['', '1'])
  expect(attempts.map(({ attributes }) => text(attributes, 'error.type'))).toEqual(['broken', '5xx'])
  expect(spans.find(({ kind }) => kind === 2)?.status.code).toBe(2)
})

test('items of a batch are spans under its server span', async () => {
  const { ask, finished } = await traced(1)
  const item = (id: number) => ({ path: `/site/v2/posts/${id}`, body: { slug: 'a' } })
  await ask('/batch/v1', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
    body: JSON.stringify({ requests: [item(1), item(2)] }),
  })
  const spans = await finished()
  const server = spans.find(({ name }) => name === 'POST /batch/v1')
  expect(childrenOf(spans, server).filter((name) => name === 'batch item')).toHaveLength(2)
})

test('a collector that is down delays no request; lost spans are counted', async () => {
  const { ask, gateway } = await start({ otlpUrl: `http://127.0.0.1:${await freePort()}`, sampleRatio: 1 })
  expect((await ask('/site/v2/posts')).status).toBe(200)
  await expect.poll(() => gateway.metric('trellis_trace_spans_total', 'outcome="failed"')).toBeGreaterThan(0)
  expect((await ask('/site/v2/posts')).status).toBe(200)
})

/** Answers every request with this head, and then with a byte now and then, until the connection ends. */
const startNagging = async (head: string): Promise<Origin> => {
  const collector = await startOrigin(async (_, wire) => {
    wire.write(`HTTP/1.1 ${head}\r\n\r\n`)
    while (!wire.socket.destroyed) {
      await pause(100)
      wire.write('1\r\nx\r\n')
    }
  })
  ends.push(() => collector.close())
  return collector
}

test.each([
  ['never comes to its end', '500 Broken\r\nTransfer-Encoding: chunked'],
  ['changes the protocol', '101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other'],
])('a response of the collector that %s is given up, and what it was for is counted', async (_, head) => {
  const collector = await startNagging(head)
  const { ask, gateway } = await start({ otlpUrl: collector.origin, sampleRatio: 1 })
  await ask('/site/v2/posts')
  await expect.poll(() => gateway.metric('trellis_trace_spans_total', 'outcome="failed"')).toBeGreaterThan(0)
  await expect.poll(() => collector.open).toBe(0)
  expect(collector.received).toHaveLength(1)
})

test('without tracing a valid context is forwarded unchanged, and no other is sent', async () => {
  const { ask, origin } = await start({})
  await ask('/site/v2/posts/1', from('01'))
  await ask('/site/v2/posts/2')
  await ask('/site/v2/posts/3', { headers: { traceparent: 'planted', tracestate: 'planted' } })
  const sent = origin.received.map(({ headers }) => [headers['traceparent'], headers['tracestate']])
  expect(sent).toEqual([
    [from('01').headers.traceparent, 'a=b'],
    [undefined, undefined],
    [undefined, undefined],
  ])
})

test('a trace is no part of a cache key, and no response carries one', async () => {
  const { ask, origin } = await traced(1)
  const responses = [
    await ask('/site/v2/posts', from('01')),
    await ask('/site/v2/posts'),
    await ask('/site/v2/posts', from('00')),
  ]
  expect(origin.received).toHaveLength(1)
  for (const { headers } of responses)
    expect([...headers.keys()].filter((name) => name.startsWith('trace'))).toEqual([])
})
