import type { ScrapeFormat } from './read-metric.ts'

const preference = (accept: string, type: string): number => {
  for (const range of accept.toLowerCase().split(',', 16)) {
    const [name = '', ...parameters] = range.split(';', 8).map((part) => part.trim())
    if (name !== type) continue
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    return weight === undefined ? 1 : Number(weight.slice(2))
  }
  return 0
}

/** OpenMetrics for whoever names it, and prefers it to plain text where both are named: with exemplars. */
export const acceptedFormat = (accept: string | undefined): ScrapeFormat => {
  const openmetrics = preference(accept ?? '', 'application/openmetrics-text')
  // NaN is no preference at all.
  return openmetrics > 0 && openmetrics >= preference(accept ?? '', 'text/plain')
    ? 'openmetrics'
    : 'prometheus'
}
