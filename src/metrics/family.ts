/** The label that stands for all series beyond the cap. */
const overflowLabel = '_overflow'

/** All series of one metric, each found by its label values. */
export type Family<Label extends string, Series> = {
  /** The series of these label values; the overflow series when there are too many. */
  series(values: Readonly<Record<Label, string>>): Series
  /** Drops every series: for gauges that are told anew as a whole. */
  clear(): void
  entries(): Iterable<readonly [labels: Readonly<Record<string, string>>, series: Series]>
}

export type FamilyOptions<Label extends string, Series> = {
  readonly labels: readonly Label[]
  readonly maxSeries: number
  readonly create: () => Series
  /** Told each time a series is asked for and not made. */
  readonly onOverflow: () => void
}

/** Label values come from lists without control characters, so a separator that is one keeps keys apart. */
const separator = '\u0001'

/** Makes the series of one metric. Bounded: a label value that should not be there costs a series, never memory without end. */
export const createFamily = <Label extends string, Series>(
  options: FamilyOptions<Label, Series>,
): Family<Label, Series> => {
  const { labels, maxSeries, create, onOverflow } = options
  const children = new Map<string, { readonly labels: Record<string, string>; readonly series: Series }>()
  let overflow: Series | undefined

  const add = (key: string, values: Readonly<Record<string, string>>): Series => {
    const series = create()
    const named = Object.fromEntries(labels.map((label) => [label, values[label] ?? '']))
    children.set(key, { labels: named, series })
    return series
  }
  const overflowSeries = (): Series => {
    overflow ??= add(overflowLabel, Object.fromEntries(labels.map((label) => [label, overflowLabel])))
    return overflow
  }

  return {
    series(values) {
      let key = ''
      for (const label of labels) key += values[label] + separator
      const known = children.get(key)
      if (known !== undefined) return known.series
      if (children.size < maxSeries) return add(key, values)
      onOverflow()
      return overflowSeries()
    },
    clear() {
      children.clear()
      overflow = undefined
    },
    *entries() {
      for (const { labels: named, series } of children.values()) yield [named, series]
    },
  }
}
