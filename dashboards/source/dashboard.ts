import { metricTable } from '../../src/observability/metrics/registry.ts'
import type { PanelFacts } from './panel.ts'
import { series } from './query.ts'

/** A named stretch of panels. */
export type Section = { readonly title: string; readonly panels: readonly PanelFacts[] }

/** A dashboard before it is Grafana's JSON. */
export type DashboardFacts = {
  /** Also the name of its file. */
  readonly name: string
  readonly title: string
  readonly description: string
  readonly sections: readonly Section[]
}

type Json = { readonly [key: string]: unknown }

const source = { type: 'prometheus', uid: '$' + '{source}' } as const

const widest = 24
const letters = 'ABCDEFGHIJ'

const thresholdSteps = ([warning, bad]: readonly [number, number]): Json => ({
  mode: 'absolute',
  steps: [
    { color: 'green', value: null },
    { color: 'yellow', value: warning },
    { color: 'red', value: bad },
  ],
})

const defaultsOf = ({ kind, unit, stacked, thresholds }: PanelFacts): Json => ({
  unit,
  ...(thresholds === undefined ? {} : { thresholds: thresholdSteps(thresholds) }),
  ...(kind === 'timeseries'
    ? {
        custom: {
          fillOpacity: stacked ? 40 : 10,
          showPoints: 'never',
          stacking: { mode: stacked ? 'normal' : 'none' },
        },
        min: 0,
      }
    : {}),
})

const optionsOf: Readonly<Record<PanelFacts['kind'], Json>> = {
  timeseries: {
    legend: { displayMode: 'table', placement: 'bottom', calcs: ['mean', 'max', 'lastNotNull'] },
    tooltip: { mode: 'multi', sort: 'desc' },
  },
  stat: { reduceOptions: { calcs: ['lastNotNull'] }, colorMode: 'value', graphMode: 'area' },
  'state-timeline': { mergeValues: true, showValue: 'never' },
  table: { showHeader: true },
}

const targetsOf = ({ kind, queries }: PanelFacts): Json[] =>
  queries.map(({ expression, legend }, index) => ({
    refId: letters[index],
    datasource: source,
    expr: expression,
    legendFormat: legend,
    ...(kind === 'table' ? { instant: true, format: 'table' } : {}),
  }))

type Place = { readonly x: number; readonly y: number }

const panelOf = (id: number, facts: PanelFacts, { x, y }: Place): Json => ({
  id,
  type: facts.kind,
  title: facts.title,
  description: facts.description,
  datasource: source,
  gridPos: { h: facts.height, w: facts.width, x, y },
  fieldConfig: { defaults: defaultsOf(facts), overrides: [] },
  options: optionsOf[facts.kind],
  targets: targetsOf(facts),
})

/** Panels side by side until a line is full, sections below each other. */
const panelsOf = (sections: readonly Section[]): Json[] => {
  const panels: Json[] = []
  let y = 0
  for (const { title, panels: facts } of sections) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { h: 1, w: widest, x: 0, y },
    })
    y += 1
    let x = 0
    let height = 0
    for (const one of facts) {
      if (x + one.width > widest) {
        x = 0
        y += height
        height = 0
      }
      panels.push(panelOf(panels.length + 1, one, { x, y }))
      x += one.width
      height = Math.max(height, one.height)
    }
    y += height
  }
  return panels
}

const annotation = (name: string, color: string, expression: string, text: string): Json => ({
  name,
  datasource: source,
  enable: true,
  iconColor: color,
  expr: expression,
  titleFormat: text,
})

const configuration = series('configInfo').text

const annotations: readonly Json[] = [
  annotation(
    'Configuration',
    'blue',
    `${configuration} unless ${configuration} offset 1m`,
    'configuration {{hash}} on {{instance}}',
  ),
  annotation('Drain', 'orange', `${series('draining').text} == 1`, '{{instance}} drains'),
  annotation(
    'Purge',
    'purple',
    `increase(${series('cacheInvalidations', { by: 'purge' }).text}[1m]) > 0`,
    'purge on {{instance}}',
  ),
]

/** The dashboard as Grafana imports it. */
export const dashboardJson = ({ name, title, description, sections }: DashboardFacts): Json => ({
  uid: `trellis-${name}`,
  title,
  description,
  tags: ['trellis'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  graphTooltip: 1,
  refresh: '30s',
  time: { from: 'now-3h', to: 'now' },
  links: [
    {
      type: 'dashboards',
      title: 'Trellis',
      tags: ['trellis'],
      asDropdown: true,
      includeVars: true,
      keepTime: true,
    },
  ],
  templating: {
    list: [
      { name: 'source', label: 'Source', type: 'datasource', query: 'prometheus' },
      {
        name: 'service',
        label: 'Service',
        type: 'query',
        datasource: source,
        query: `label_values(${metricTable.requests.name}, service)`,
        refresh: 2,
        multi: true,
        includeAll: true,
        allValue: '.*',
      },
    ],
  },
  annotations: { list: annotations },
  panels: panelsOf(sections),
})
