import { afterEach, expect, test } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { type Script, startOrigin } from '../support/origin.ts'

type Attribute = {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: number }
}
type Point = {
  readonly attributes: readonly Attribute[]
  readonly startTimeUnixNano: string
  readonly timeUnixNano: string
  readonly asDouble?: number
  readonly count?: number
  readonly sum?: number
  readonly bucketCounts?: readonly number[]
  readonly explicitBounds?: readonly number[]
}
type Numbers = { readonly dataPoints: readonly Point[] }
type Metric = {
  readonly name: string
  readonly unit: string
  readonly gauge?: Numbers
  readonly sum?: Numbers & { readonly isMonotonic: boolean; readonly aggregationTemporality: number }
  readonly histogram?: Numbers & { readonly aggregationTemporality: number }
}
type Push = {
  readonly resourceMetrics: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeMetrics: readonly { readonly metrics: readonly Metric[] }[]
  }[]
}

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const accept: Script = (_request, wire) =>
  wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{}' })

/** An OTLP collector: keeps the last push of each instance. */
const startCollector = async () => {
  const pushes: {
    readonly instance: string
    readonly service: string
    readonly metrics: readonly Metric[]
  }[] = []
  let script = accept
  const origin = await startOrigin((request, wire, count) => {
    expect(request).toMatchObject({
      method: 'POST',
      target: '/v1/metrics',
      headers: { 'content-type': 'application/json' },
    })
    const [{ resource, scopeMetrics }] = (JSON.parse(request.content.toString()) as Push)
      .resourceMetrics as unknown as [Push['resourceMetrics'][number]]
    const named = Object.fromEntries(resource.attributes.map(({ key, value }) => [key, value.stringValue]))
    pushes.push({
      instance: String(named['service.instance.id']),
      service: String(named['service.name']),
      metrics: scopeMetrics.flatMap(({ metrics }) => metrics),
    })
    return script(request, wire, count)
  })
  ends.push(() => origin.close())
  return { url: origin.origin, pushes, use: (next: Script) => (script = next) }
}

const numbersOf = ({ gauge, sum, histogram }: Metric): readonly Point[] =>
  (gauge ?? sum ?? histogram)?.dataPoints ?? []

const joined = (attributes: readonly string[]): string => [...attributes].sort().join()

/** The lines of a push in the form of `scraped`. */
const pushed = (metrics: readonly Metric[]): Map<string, number> => {
  const lines = new Map<string, number>()
  for (const metric of metrics)
    for (const point of numbersOf(metric)) {
      const attributes = point.attributes.map(
        ({ key, value }) => `${key}=${value.stringValue ?? value.intValue}`,
      )
      const labels = joined(attributes)
      if (point.asDouble !== undefined) lines.set(`${metric.name} ${labels}`, point.asDouble)
      else {
        let count = 0
        point.bucketCounts?.forEach((bucket, at) => {
          count += bucket
          const le = String(point.explicitBounds?.[at] ?? '+Inf')
          lines.set(`${metric.name}_bucket ${joined([...attributes, `le=${le}`])}`, count)
        })
        lines.set(`${metric.name}_sum ${labels}`, point.sum ?? Number.NaN)
        lines.set(`${metric.name}_count ${labels}`, point.count ?? Number.NaN)
      }
    }
  return lines
}

const scraped = (text: string): Map<string, number> => {
  const lines = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined) continue
    const sorted = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => `${key}=${text}`).sort()
    lines.set(`${name} ${sorted.join()}`, Number(value))
  }
  return lines
}

/** Names and attributes of the OpenTelemetry conventions in place of those of the scrape. */
const semantic = (line: string, port: number): string => {
  const [name = '', labels = ''] = line.split(/ (.*)/s)
  if (name === 'trellis_in_flight_requests') return 'http.server.active_requests '
  const [, kind] = /^trellis_(request|upstream_attempt)_duration_seconds/.exec(name) ?? []
  if (kind === undefined) return line
  const attributes = labels
    .replace('service=', 'trellis.service=')
    .replace(/target=[^,]*/, `server.address=127.0.0.1,server.port=${port},url.scheme=http`)
  const otlp = kind === 'request' ? 'http.server.request.duration' : 'http.client.request.duration'
  const ending = name.slice(name.lastIndexOf('_'))
  return `${otlp}${ending} ${attributes.split(',').sort().join()}`
}

const services = (target: string) => ({
  pages: {
    contract: 'open',
    mount: '/pages',
    upstream: { targets: [target] },
    cache: { rules: [{ match: 'GET /**', ttl: '1m' }] },
  },
})

/** Changes with the scrape or the push itself. */
const moves = (line: string): boolean =>
  !line.startsWith('trellis_') || line.startsWith('trellis_metric_pushes')

test('a push has every number of the scrape, by the names of the conventions where these have one', async () => {
  const collector = await startCollector()
  const upstream = await startOrigin()
  ends.push(() => upstream.close())
  const gateway = await startTestGateway({
    metrics: { otlpUrl: collector.url, interval: '1s' },
    tracing: { serviceName: 'edge-7' },
    services: services(upstream.origin),
  })
  ends.push(() => gateway.close())
  for (const path of ['/a', '/a', '/b'])
    await (await fetch(`${gateway.publicAddress}/pages${path}`)).arrayBuffer()
  const compare = async () => {
    const text = await (await fetch(`${gateway.adminAddress}/metrics`)).text()
    const { service, metrics } = collector.pushes.at(-1) ?? { metrics: [] }
    const lines = pushed(metrics)
    const expected = [...scraped(text)].filter(([line]) => !moves(line))
    const ours = new Map(expected.map(([line, value]) => [semantic(line, upstream.port), value]))
    const sent = new Map([...ours.keys()].map((line) => [line, lines.get(line)]))
    return { service, metrics, ours, sent }
  }
  // A connection may become idle between the push and the scrape: a later push has it too.
  await expect
    .poll(
      async () => {
        const { ours, sent } = await compare()
        return [...ours].filter(([line, value]) => sent.get(line) !== value)
      },
      { interval: 300 },
    )
    .toEqual([])
  const { service, metrics, ours } = await compare()
  expect(ours.size).toBeGreaterThan(300)
  expect(ours.get('http.server.request.duration_count trellis.service=pages')).toBe(3)
  expect(service).toBe('edge-7')
  const named = (name: string) => metrics.find((metric) => metric.name === name)
  expect(named('http.server.request.duration')).toMatchObject({
    unit: 's',
    histogram: { aggregationTemporality: 2 },
  })
  expect(named('http.server.active_requests')?.sum?.isMonotonic).toBe(false)
  expect(named('process.cpu.time')?.sum).toMatchObject({
    isMonotonic: true,
    dataPoints: [
      { attributes: [{ key: 'cpu.mode', value: { stringValue: 'user' } }] },
      { attributes: [{ key: 'cpu.mode', value: { stringValue: 'system' } }] },
    ],
  })
  expect(named('process.memory.usage')?.sum?.dataPoints[0]?.asDouble).toBeGreaterThan(1e6)
  expect(metrics.map(({ name }) => name)).not.toContain('trellis_request_duration_seconds')
})

test('each worker pushes its own counts, which add up to the scrape; a collector that fails is one line, and one when it takes metrics again', async () => {
  const collector = await startCollector()
  collector.use((_request, wire) => wire.respond({ status: 400 }))
  const upstream = await startOrigin()
  ends.push(() => upstream.close())
  const gateway = await startGatewayProcess({
    workers: 2,
    log: { level: 'info' },
    metrics: { otlpUrl: collector.url, interval: '1s' },
    services: services(upstream.origin),
  })
  ends.push(() => gateway.stop())
  for (let count = 0; count < 6; count += 1) {
    const headers = { connection: 'close' }
    await (await fetch(`${gateway.origin}/pages/${count}`, { headers })).arrayBuffer()
  }
  const outcomes = () => logLinesOf(gateway.program, 'metrics-pushed').map(({ outcome }) => outcome)
  await expect.poll(() => collector.pushes.length).toBeGreaterThan(5)
  expect(outcomes()).toEqual(['failed', 'failed'])
  collector.use(accept)
  await expect.poll(outcomes).toEqual(['failed', 'failed', 'exported', 'exported'])
  const last = new Map(collector.pushes.map(({ instance, metrics }) => [instance, pushed(metrics)]))
  expect(last.size).toBe(2)
  const requests = [...last.values()].map(
    (lines) => lines.get('http.server.request.duration_count trellis.service=pages') ?? 0,
  )
  expect(requests[0]).not.toBe(0)
  expect(requests[1]).not.toBe(0)
  expect((requests[0] ?? 0) + (requests[1] ?? 0)).toBe(6)
})
