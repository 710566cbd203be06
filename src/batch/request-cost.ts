/** What one upstream request costs: a part for the request, whatever is in it, and a part for each item. */
export type RequestCost = { readonly startUpMs: number; readonly itemMs: number }

/** Sums of the observations, older ones fading. */
export type CostSums = {
  readonly weight: number
  readonly items: number
  readonly ms: number
  readonly itemsSquared: number
  readonly itemsMs: number
}

/** Nothing seen yet. */
export const noCost: CostSums = { weight: 0, items: 0, ms: 0, itemsSquared: 0, itemsMs: 0 }

/** After twenty newer observations an older one counts a third. */
const fading = 0.95

/** Variance of the sizes, by the square of their mean: what is measured of 12 and 13 items only is noise. */
const leastSpread = 0.01

/** The sums with one more request of so many items that took so long. */
export const withRequest = (sums: CostSums, items: number, ms: number): CostSums => ({
  weight: sums.weight * fading + 1,
  items: sums.items * fading + items,
  ms: sums.ms * fading + ms,
  itemsSquared: sums.itemsSquared * fading + items * items,
  itemsMs: sums.itemsMs * fading + items * ms,
})

/** Least squares, neither part below zero; undefined before anything was seen. */
export const requestCost = (sums: CostSums): RequestCost | undefined => {
  const { weight, items, ms, itemsSquared, itemsMs } = sums
  if (weight === 0 || items === 0) return undefined
  const spread = weight * itemsSquared - items * items
  // Requests of one size do not tell the parts apart; then all counts as the items', which never says too little.
  const whole: RequestCost = { startUpMs: 0, itemMs: ms / items }
  if (spread < leastSpread * items * items) return whole
  const slope = (weight * itemsMs - items * ms) / spread
  const base = (ms - slope * items) / weight
  if (base < 0) return whole
  return slope < 0 ? { startUpMs: ms / weight, itemMs: 0 } : { startUpMs: base, itemMs: slope }
}
