/** Buckets of the OpenTelemetry HTTP conventions for request durations, in seconds. */
export const httpSeconds = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const
/** Most hits take less than a millisecond: the first bucket of the conventions would hold them all. */
export const requestSeconds = [0.000_5, 0.001, 0.002_5, ...httpSeconds] as const
/**
 * Series for each route fill a scrape, so routes show fewer of the same buckets: enough for an objective, and for finding a slow
 * route. All buckets are counted, and the series of the service are their sums.
 */
export const routeSeconds = [0.005, 0.025, 0.1, 0.25, 1, 2.5, 10] as const
/** The gateway's own overhead is far below the first HTTP bucket. */
export const ownSeconds = [
  0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5,
] as const
/** Ages of served responses: from a burst of readers to a day. */
export const ageSeconds = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400] as const
/** For counts that are small in most batches. */
export const counts = [1, 2, 3, 5, 8, 12, 16, 20, 25, 50, 100] as const

/** How the values of several processes are combined: sum, maximum or minimum. */
export type Together = 'sum' | 'max' | 'min'

export type Labels = Readonly<Record<string, string>>

/** A closed list; `configured`: they come from the configuration; `open`: unknown before the first event, or too many. */
type LabelValues = 'configured' | 'open' | readonly string[]
type LabelTable = Readonly<Record<string, LabelValues>>

export const configured = { service: 'configured', target: 'configured', limit: 'configured' } as const
export const open = 'open'

/** All members of a union of texts. The compiler asks for each of them, so that a new one gets its series too. */
export const all = <Value extends string>(members: Readonly<Record<Value, 1>>): readonly Value[] =>
  Object.keys(members) as Value[]

/** Each of some label values with one more label, which has one of these values. */
export const withLabel = (
  series: readonly Labels[],
  label: string,
  values: readonly string[],
): readonly Labels[] => series.flatMap((labels) => values.map((value) => ({ ...labels, [label]: value })))

export type MetricRow = {
  readonly name: string
  readonly help: string
  /** Values come from the configuration, from a route table or from a closed list: never from a client. */
  readonly labels: readonly string[]
  readonly values: LabelTable
  /** Where not every combination of the closed lists occurs. */
  readonly series?: readonly Labels[] | undefined
  /** How the values of several processes are combined; the sum by default. */
  readonly together?: Together
} & (
  | { readonly type: 'counter' | 'gauge' }
  | {
      readonly type: 'histogram'
      /** Upper bounds that are written out. */
      readonly buckets: readonly number[]
      /** Finer bounds that are counted by; the written ones are among them. */
      readonly counted: readonly number[]
    }
)

const labelled = <const Values extends LabelTable>(values: Values) => ({
  labels: Object.keys(values) as readonly (keyof Values & string)[],
  values,
})

/** A row of a counter; the prefix is added. */
export const counter = <Name extends string, const Values extends LabelTable>(
  name: Name,
  values: Values,
  help: string,
  series?: readonly Labels[],
) => ({ type: 'counter', name: `trellis_${name}`, ...labelled(values), help, series }) as const

/** A row of a gauge; the prefix is added. */
export const gauge = <Name extends string, const Values extends LabelTable>(
  name: Name,
  values: Values,
  help: string,
  together: Together = 'sum',
) => ({ type: 'gauge', name: `trellis_${name}`, ...labelled(values), help, together }) as const

/** A row of a histogram; the prefix is added. */
export const histogram = <Name extends string, const Values extends LabelTable>(
  name: Name,
  values: Values,
  buckets: readonly number[],
  help: string,
  counted: readonly number[] = buckets,
) => ({ type: 'histogram', name: `trellis_${name}`, ...labelled(values), buckets, counted, help }) as const
