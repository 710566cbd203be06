import { randomUUID } from 'node:crypto'
import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api'
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from '@opentelemetry/otlp-exporter-base/node-http'
import { JsonMetricsSerializer, MetricsExporterMetricsHelper } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics'
import {
  ATTR_HTTP_ROUTE,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
  METRIC_HTTP_CLIENT_REQUEST_DURATION,
  METRIC_HTTP_SERVER_REQUEST_DURATION,
} from '@opentelemetry/semantic-conventions'
import { systemLookup } from '../system-lookup.ts'
import type { MetricSnapshot } from './metrics/registry.ts'
import { addressOf, boundExports, collectorUrl, exportTimeoutMs, success } from './open-telemetry.ts'

type Labels = Readonly<Record<string, string | number>>

/** Name, kind and attributes of the OpenTelemetry semantic conventions, where they have the metric. */
type Semantic = {
  readonly name: string
  /** An UpDownCounter of the conventions is a gauge of Prometheus. */
  readonly isUpDown?: true
  readonly attributes: (labels: Labels) => Attributes
}

const attributesOf = (names: Readonly<Record<string, string>>, fixed: Attributes = {}) => {
  return (labels: Labels): Attributes => ({
    ...fixed,
    ...Object.fromEntries(Object.entries(labels).map(([label, value]) => [names[label] ?? label, value])),
  })
}

const ofService = attributesOf({ service: 'trellis.service', route: ATTR_HTTP_ROUTE })
const ofTarget = ({ target, ...labels }: Labels): Attributes => ({
  ...ofService(labels),
  // `_overflow` is no URL.
  ...(URL.canParse(String(target)) ? addressOf(String(target)) : {}),
})
const ofProcess = attributesOf({})

/** Those of the conventions that are not stable yet have no constant in the package. */
const semantics: Readonly<Record<string, Semantic>> = {
  trellis_request_duration_seconds: { name: METRIC_HTTP_SERVER_REQUEST_DURATION, attributes: ofService },
  trellis_in_flight_requests: {
    name: 'http.server.active_requests',
    isUpDown: true,
    attributes: ofService,
  },
  trellis_upstream_attempt_duration_seconds: {
    name: METRIC_HTTP_CLIENT_REQUEST_DURATION,
    attributes: ofTarget,
  },
  process_cpu_user_seconds_total: {
    name: 'process.cpu.time',
    attributes: attributesOf({}, { 'cpu.mode': 'user' }),
  },
  process_cpu_system_seconds_total: {
    name: 'process.cpu.time',
    attributes: attributesOf({}, { 'cpu.mode': 'system' }),
  },
  process_resident_memory_bytes: { name: 'process.memory.usage', isUpDown: true, attributes: ofProcess },
  process_virtual_memory_bytes: { name: 'process.memory.virtual', isUpDown: true, attributes: ofProcess },
  process_open_fds: {
    name: 'process.unix.file_descriptor.count',
    isUpDown: true,
    attributes: ofProcess,
  },
  nodejs_gc_duration_seconds: {
    name: 'v8js.gc.duration',
    attributes: attributesOf({ kind: 'v8js.gc.type' }),
  },
}

/** Of Prometheus names (base units). */
const unitOf = (name: string): string =>
  /_seconds(?:_total)?$/.test(name) ? 's' : /_bytes(?:_total)?$/.test(name) ? 'By' : ''

const hrTime = (epochMs: number): HrTime => [Math.floor(epochMs / 1000), Math.round((epochMs % 1000) * 1e6)]

type Times = Pick<DataPoint<unknown>, 'startTime' | 'endTime'>

/** Prometheus counts cumulatively, OTLP each bucket by itself; both have upper bounds that belong to their bucket. */
const histogramPoints = (
  { values }: MetricSnapshot,
  attributes: Semantic['attributes'],
  times: Times,
): DataPoint<Histogram>[] => {
  type Draft = { readonly labels: Labels; bounds: number[]; cumulative: number[]; sum: number }
  const drafts = new Map<string, Draft>()
  for (const { metricName = '', labels: written, value } of values) {
    const { le, ...labels } = written
    const key = JSON.stringify(Object.entries(labels).sort())
    const draft = drafts.get(key) ?? { labels, bounds: [], cumulative: [], sum: 0 }
    drafts.set(key, draft)
    if (metricName.endsWith('_sum')) draft.sum = value
    if (le === undefined) continue
    if (le !== '+Inf') draft.bounds.push(Number(le))
    draft.cumulative.push(value)
  }
  return [...drafts.values()].map(({ labels, bounds, cumulative, sum }) => ({
    ...times,
    attributes: attributes(labels),
    value: {
      buckets: {
        boundaries: bounds,
        counts: cumulative.map((count, at) => count - (cumulative[at - 1] ?? 0)),
      },
      sum,
      count: cumulative.at(-1) ?? 0,
    },
  }))
}

const metricData = (metric: MetricSnapshot, times: Times): MetricData => {
  const { name, help: description, type, values } = metric
  const semantic = semantics[name]
  const attributes = semantic?.attributes ?? ofProcess
  const general = {
    descriptor: {
      name: semantic?.name ?? name,
      description,
      unit: unitOf(name),
      valueType: ValueType.DOUBLE,
    },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  }
  if (type === 'histogram')
    return {
      ...general,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints: histogramPoints(metric, attributes, times),
    }
  // JSON has no NaN, which a gauge is before its first measurement.
  const dataPoints = values
    .filter(({ value }) => Number.isFinite(value))
    .map(({ labels, value }) => ({ ...times, attributes: attributes(labels), value }))
  if (type === 'counter' || semantic?.isUpDown === true)
    return { ...general, dataPointType: DataPointType.SUM, isMonotonic: type === 'counter', dataPoints }
  return { ...general, dataPointType: DataPointType.GAUGE, dataPoints }
}

/** The metrics of a scrape for OTLP. Metrics that the conventions give one name become one. */
const metricsOf = (snapshot: readonly MetricSnapshot[], times: Times): MetricData[] => {
  const byName = new Map<string, MetricData>()
  for (const metric of snapshot) {
    const data = metricData(metric, times)
    const previous = byName.get(data.descriptor.name)
    if (previous === undefined) byName.set(data.descriptor.name, data)
    else (previous.dataPoints as DataPoint<unknown>[]).push(...data.dataPoints)
  }
  return [...byName.values()].filter(({ dataPoints }) => dataPoints.length > 0)
}

export type PushEvent = { readonly kind: 'metrics-pushed'; readonly outcome: 'exported' | 'failed' }

type PushOptions = {
  /** Of an OTLP collector over HTTP; without a path, `/v1/metrics` is meant. */
  readonly otlpUrl: string
  readonly intervalMs: number
  readonly serviceName: string
  readonly version: string
  readonly snapshot: () => Promise<readonly MetricSnapshot[]>
  readonly report: (event: PushEvent) => void
}

/** Pushes the metrics of this process to a collector: one push at a time, and a last one at the end. */
export const startPush = ({ intervalMs, snapshot, report, ...options }: PushOptions) => {
  const url = collectorUrl(options.otlpUrl, '/v1/metrics')
  const unbound = boundExports(url, exportTimeoutMs)
  const delegate = createOtlpHttpExportDelegate(
    convertLegacyHttpOptions(
      {
        url: url.href,
        timeoutMillis: exportTimeoutMs,
        concurrencyLimit: 1,
        httpAgentOptions: { lookup: systemLookup },
      },
      'METRICS',
      'v1/metrics',
      { 'Content-Type': 'application/json' },
    ),
    JsonMetricsSerializer,
    'otlp_http_json_metric_exporter',
    MetricsExporterMetricsHelper,
    undefined,
  )
  const resource = resourceFromAttributes({
    [ATTR_SERVICE_NAME]: options.serviceName,
    [ATTR_SERVICE_VERSION]: options.version,
    // Each process pushes its own counts: the sum over the instances is that of a scrape.
    'service.instance.id': randomUUID(),
  })
  const startTime = hrTime(performance.timeOrigin)
  const push = async (): Promise<void> => {
    const times = { startTime, endTime: hrTime(Date.now()) }
    const content: ResourceMetrics = {
      resource,
      scopeMetrics: [
        {
          scope: { name: 'trellis', version: options.version },
          metrics: metricsOf(await snapshot(), times),
        },
      ],
    }
    const code = await new Promise<number>((resolve) => {
      delegate.export(content, (result) => resolve(result.code))
    })
    report({ kind: 'metrics-pushed', outcome: code === success ? 'exported' : 'failed' })
  }
  let last: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  const next = (): void => {
    timer = setTimeout(() => {
      last = push().finally(next)
    }, intervalMs).unref()
  }
  next()
  return {
    close: async (): Promise<void> => {
      clearTimeout(timer)
      await last
      clearTimeout(timer)
      await push()
      await delegate.shutdown()
      unbound()
    },
  }
}
