/** What becomes of spans: `ended` here, then `exported`, or `failed` when the collector did not take them. The rest was given up. */
export type TracingEvent = {
  readonly kind: 'spans'
  readonly outcome: 'ended' | 'exported' | 'failed'
  readonly count: number
}
