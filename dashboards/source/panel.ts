/** A unit that Grafana knows. */
export type Unit =
  | 'reqps'
  | 'ops'
  | 's'
  | 'bytes'
  | 'Bps'
  | 'short'
  | 'percentunit'
  | 'dateTimeFromNow'
  | 'none'

/** One line in a panel; the legend names the labels that distinguish lines. */
export type Query = { readonly expression: string; readonly legend: string }

/** What a panel shows, without its position. */
export type PanelFacts = {
  readonly kind: 'timeseries' | 'stat' | 'state-timeline' | 'table'
  readonly title: string
  /** A sentence: what is seen, and what of it is bad. */
  readonly description: string
  readonly unit: Unit
  readonly queries: readonly Query[]
  /** Of 24. */
  readonly width: number
  readonly height: number
  readonly stacked: boolean
  /** From these values on it is yellow, red. */
  readonly thresholds: readonly [number, number] | undefined
}

type Given = Pick<PanelFacts, 'title' | 'description' | 'unit'> & {
  readonly queries: readonly (readonly [expression: string, legend: string])[]
} & Partial<Pick<PanelFacts, 'width' | 'height' | 'stacked' | 'thresholds'>>

const made = (kind: PanelFacts['kind'], width: number, height: number, given: Given): PanelFacts => ({
  kind,
  title: given.title,
  description: given.description,
  unit: given.unit,
  queries: given.queries.map(([expression, legend]) => ({ expression, legend })),
  width: given.width ?? width,
  height: given.height ?? height,
  stacked: given.stacked ?? false,
  thresholds: given.thresholds,
})

/** Lines over time. */
export const lines = (given: Given): PanelFacts => made('timeseries', 8, 8, given)

/** One number. */
export const number = (given: Given): PanelFacts => made('stat', 4, 4, given)

/** States over time. */
export const states = (given: Given): PanelFacts => made('state-timeline', 12, 8, given)

/** Values now, a row for each. */
export const table = (given: Given): PanelFacts => made('table', 12, 8, given)
