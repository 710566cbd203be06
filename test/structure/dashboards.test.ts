import { execFileSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { createMetrics } from '../../src/metrics/create-metrics.ts'
import { metricTable } from '../../src/metrics/metric-table.ts'
import { describeWith } from '../support/requirements.ts'

type Panel = {
  readonly title: string
  readonly description?: string
  readonly type: string
  readonly fieldConfig?: { readonly defaults?: { readonly unit?: string } }
  readonly targets?: readonly { readonly expr: string }[]
}
type Dashboard = {
  readonly title: string
  readonly panels: readonly Panel[]
  readonly annotations: { readonly list: readonly { readonly expr?: string }[] }
  readonly templating: { readonly list: readonly { readonly query: string }[] }
}
type RuleFile = {
  readonly groups: readonly {
    readonly rules: readonly { readonly record?: string; readonly alert?: string; readonly expr: string }[]
  }[]
}
type Query = readonly [where: string, expression: string]

const dashboards = (await readdir('dashboards')).filter((file) => file.endsWith('.json'))
const rules = ['trellis-recording.yml', 'trellis-alerts.yml']
const read = async (file: string): Promise<string> => readFile(`dashboards/${file}`, 'utf8')

const readDashboard = async (file: string) => JSON.parse(await read(file)) as Dashboard
const readRules = async (file: string) =>
  (parse(await read(`rules/${file}`)) as RuleFile).groups.flatMap((group) => group.rules)

const queriesOf = (file: string, { panels, annotations, templating }: Dashboard): Query[] => [
  ...panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }): Query => [`${file}: ${title}`, expr]),
  ),
  ...annotations.list.flatMap(({ expr }): Query[] =>
    expr === undefined ? [] : [[`${file}: annotation`, expr]],
  ),
  ...templating.list.map(({ query }): Query => [`${file}: variable`, query]),
]

const queries: Query[] = []
/** Name as it is written in a query, and the labels it has. */
const known = new Map<string, readonly string[]>()

const readQueries = async (): Promise<void> => {
  for (const file of dashboards) queries.push(...queriesOf(file, await readDashboard(file)))
  for (const { record, alert, expr } of (await Promise.all(rules.map(readRules))).flat()) {
    queries.push([`rule ${record ?? alert}`, expr])
    if (record !== undefined) known.set(record, ['service'])
  }
}

const readNames = async (): Promise<void> => {
  for (const row of Object.values(metricTable)) {
    if (row.type !== 'histogram') known.set(row.name, row.labels)
    else
      for (const part of ['bucket', 'sum', 'count']) known.set(`${row.name}_${part}`, [...row.labels, 'le'])
  }
  const text = await createMetrics({ version: '1', configHash: 'a', processMetrics: true }).scrape()
  for (const [, name = ''] of text.matchAll(/^# TYPE ((?:nodejs|process)_\w+) /gm)) known.set(name, [])
}

beforeAll(async () => {
  await readQueries()
  await readNames()
})

/** Words of the query that are metric names: what the exporters and the recording rules call theirs. */
const namesIn = (expression: string): string[] =>
  [
    ...expression.replaceAll(/"[^"]*"/g, '').matchAll(/\b(?:service:)?(?:trellis|nodejs|process)_[\w:]+/g),
  ].map(([name]) => name)

const scrapeLabels = ['job', 'instance']

test('there is something to check', () => {
  expect(dashboards).toContain('overview.json')
  expect(queries.length).toBeGreaterThan(50)
})

test('every metric in a dashboard or rule is one that exists', () => {
  const missing = queries.flatMap(([where, expression]) => {
    const names = namesIn(expression)
    if (names.length === 0 && !expression.startsWith('up{') && expression !== 'prometheus')
      return [`${where}: no metric at all`]
    return names.filter((name) => !known.has(name)).map((name) => `${where}: ${name}`)
  })
  expect(missing).toEqual([])
})

test('every label that a query selects by is one that the metric has', () => {
  const wrong = queries.flatMap(([where, expression]) =>
    [...expression.matchAll(/([\w:]+)\{([^}]*)\}/g)].flatMap(([, name = '', selectors = '']) =>
      [...selectors.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)]
        .filter(
          ([, label = '']) => name !== 'up' && ![...(known.get(name) ?? []), ...scrapeLabels].includes(label),
        )
        .map(([, label]) => `${where}: ${name} has no label ${label}`),
    ),
  )
  expect(wrong).toEqual([])
})

test('every metric is used, or is named here with the reason', () => {
  const unused: Readonly<Record<string, string>> = {
    trellis_item_requests_total: 'detail of batches',
    trellis_cache_forwards_total: 'detail of cache outcomes',
    trellis_cache_stored_total: 'detail of cache outcomes',
    trellis_cache_stored_bytes_total: 'detail of cache outcomes',
    trellis_cache_collapsed_total: 'shown as an outcome of requests',
    trellis_cache_background_failures_total: 'shows as stale served',
    trellis_cache_invalidations_total: 'entries say more',
    trellis_cache_cut_forwards_total: 'detail of invalidation',
    trellis_cache_evicted_bytes_total: 'entries are shown',
    trellis_cache_entries: 'bytes are shown',
    trellis_upstream_attempt_duration_seconds: 'the head is shown',
    trellis_upstream_queue_seconds: 'who waits is shown',
    trellis_upstream_target_changes_total: 'the state is shown',
    trellis_upstream_target_outstanding_requests: 'shown by service',
    trellis_batch_size_items: 'batch dashboard',
    trellis_batch_parallelism_items: 'batch dashboard',
    trellis_batch_saved_seconds_total: 'batch dashboard',
    trellis_batch_ordered_items_total: 'batch dashboard',
    trellis_batch_item_queue_seconds: 'batch dashboard',
    trellis_batch_splits_total: 'batch dashboard',
    trellis_batch_chunks_total: 'batch dashboard',
    trellis_batch_chunk_items: 'batch dashboard',
    trellis_batch_chunk_duration_seconds: 'batch dashboard',
    trellis_batch_upstream_requests: 'batch dashboard',
    trellis_discovery_refreshes_total: 'drift has an alert',
    trellis_discovery_unlisted_routes: 'drift has an alert',
    trellis_discovery_learned_rows: 'drift has an alert',
    trellis_discovery_refused_routes: 'drift has an alert',
    trellis_build_info: 'for joins',
  }
  const used = new Set(
    queries
      .flatMap(([, expression]) => namesIn(expression))
      .map((name) => name.replace(/_(bucket|sum|count)$/, '')),
  )
  const notUsed = Object.values(metricTable)
    .map(({ name }) => name as string)
    .filter((name) => !used.has(name))
  expect(notUsed.sort()).toEqual(Object.keys(unused).sort())
})

test.each(dashboards)('%s: every panel says what it shows and in which unit', async (file) => {
  for (const { title, type, description, fieldConfig } of (await readDashboard(file)).panels) {
    if (type === 'row') continue
    expect(description, title).toMatch(/\.$/)
    expect(fieldConfig?.defaults?.unit, title).toBeTruthy()
  }
})

describe('alerts', () => {
  test('each has its paragraph in docs/metrics.md, and no paragraph is left over', async () => {
    const docs = await readFile('docs/metrics.md', 'utf8')
    const told = [...docs.matchAll(/^- \*\*(Trellis\w+)\*\*: /gm)].map(([, name]) => name)
    const alerts = (await readRules('trellis-alerts.yml')).map(({ alert }) => alert)
    expect(told).toEqual(alerts)
  })

  test('each is tried by a promtool test', async () => {
    const tests = await read('rules/trellis-tests.yml')
    for (const { alert } of await readRules('trellis-alerts.yml'))
      expect(tests).toContain(`alertname: ${alert}\n`)
  })
})

describeWith('promtool', 'promtool', () => {
  const promtool = (...args: string[]): string =>
    execFileSync('promtool', args, { cwd: 'dashboards/rules', encoding: 'utf8', stdio: 'pipe' })

  test('finds no fault in the rules', () => {
    expect(promtool('check', 'rules', ...rules)).toContain('SUCCESS')
  })

  test('sees each alert fire on its fault and not otherwise', () => {
    expect(promtool('test', 'rules', 'trellis-tests.yml')).toContain('SUCCESS')
  })
})
