import { execFileSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { dashboardFiles } from '../../dashboards/source/dashboards.ts'
import { metricTable } from '../../src/observability/metrics/registry.ts'
import { createMetrics } from '../../src/observability/metrics.ts'
import { descriptionLabels } from '../../src/wordpress/tags/description-labels.ts'
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
    readonly rules: readonly {
      readonly record?: string
      readonly alert?: string
      readonly expr: string
      readonly annotations?: { readonly runbook?: string }
    }[]
  }[]
}
type Query = readonly [where: string, expression: string]

const dashboards = (await readdir('dashboards')).filter((file) => file.endsWith('.json'))
const rules = ['trellis-recording.yml', 'trellis-alerts.yml']
const ruleTests = ['trellis-tests.yml', 'trellis-long-tests.yml']
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
  const text = await createMetrics({
    descriptionLabels,
    version: '1',
    configHash: 'a',
    processMetrics: true,
  }).scrape()
  for (const [, name = '', type] of text.matchAll(/^# TYPE ((?:nodejs|process)_\w+) (\w+)$/gm)) {
    for (const part of type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']) known.set(name + part, [])
  }
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
  expect(queries.length).toBeGreaterThan(50)
})

test.each([...dashboardFiles])(
  '%s is up to date with its source (npm run dashboards)',
  async (file, text) => {
    expect(await read(file)).toBe(text)
  },
)

test('the folder has no other dashboard', () => {
  expect(dashboards.sort()).toEqual([...dashboardFiles.keys()].sort())
})

test('every metric in a dashboard or rule is one that exists', () => {
  const missing = queries.flatMap(([where, expression]) => {
    const names = namesIn(expression)
    if (names.length === 0 && !/^(?:absent\()?up\{/.test(expression) && expression !== 'prometheus')
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
    trellis_cache_lost_hits_total: 'trellis advise and the status page show it with what to do',
    trellis_cache_described_total: 'the same',
    trellis_cache_untested_plugins_total: 'the same',
    trellis_write_faults_total: 'a fault of the gateway itself, for a report',
    trellis_write_states_total: 'for an inquiry into one service',
    trellis_writes_open: 'for an inquiry into why reads are not stored',
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
  test('each has its paragraph in docs/operations.md where its runbook points, and no paragraph is left over', async () => {
    const docs = await readFile('docs/operations.md', 'utf8')
    const told = [...docs.matchAll(/^### (Trellis\w+)\n\n[A-Z]/gm)].map(([, name]) => name)
    const alerts = await readRules('trellis-alerts.yml')
    expect(told).toEqual(alerts.map(({ alert }) => alert))
    for (const { alert = '', annotations } of alerts)
      expect(annotations?.runbook).toBe(`docs/operations.md#${alert.toLowerCase()}`)
  })

  test('each panel that a paragraph quotes is in a dashboard', async () => {
    const docs = await readFile('docs/operations.md', 'utf8')
    const quoted = [...docs.slice(docs.indexOf('\n## Alerts')).matchAll(/"([A-Z][^"]+)"/g)].map(
      ([, name]) => name,
    )
    const all = await Promise.all(dashboards.map(readDashboard))
    const titles = new Set(all.flatMap(({ panels }) => panels.map(({ title }) => title)))
    expect(quoted.length).toBeGreaterThan(4)
    expect(quoted.filter((name) => name === undefined || !titles.has(name))).toEqual([])
  })

  test('each is tried by a promtool test', async () => {
    const tests = (await Promise.all(ruleTests.map((file) => read(`rules/${file}`)))).join('')
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
    expect(promtool('test', 'rules', ...ruleTests)).toContain('SUCCESS')
  })
})
