/** Buckets of the OpenTelemetry HTTP conventions for request durations, in seconds. */
export const httpSeconds = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const
/**
 * Series for each route fill a scrape, so routes show fewer of the same buckets: enough for an objective and for finding a slow
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

export type MetricRow = {
  readonly name: string
  readonly help: string
  /** Values come from the configuration, from a route table or from a closed list: never from a client. */
  readonly labels: readonly string[]
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

/** A row of a counter; the prefix is added. */
export const counter = <Name extends string, const Labels extends readonly string[]>(
  name: Name,
  labels: Labels,
  help: string,
) => ({ type: 'counter', name: `trellis_${name}`, labels, help }) as const
/** A row of a gauge; the prefix is added. */
export const gauge = <Name extends string, const Labels extends readonly string[]>(
  name: Name,
  labels: Labels,
  help: string,
  together: Together = 'sum',
) => ({ type: 'gauge', name: `trellis_${name}`, labels, help, together }) as const
/** A row of a histogram; the prefix is added. */
export const histogram = <Name extends string, const Labels extends readonly string[]>(
  name: Name,
  labels: Labels,
  buckets: readonly number[],
  help: string,
  counted: readonly number[] = buckets,
) => ({ type: 'histogram', name: `trellis_${name}`, labels, buckets, counted, help }) as const
