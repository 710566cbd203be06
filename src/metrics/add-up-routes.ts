import type { Families } from './registry.ts'
import { addSeries } from './series.ts'

/** What is told for each route by few buckets is told for each service by all of them: counted once, added up at a scrape. */
export const addUpRoutes = ({ routeSeconds, requestSeconds }: Families): void => {
  requestSeconds.clear()
  for (const [{ service = '' }, series] of routeSeconds.entries()) {
    addSeries(requestSeconds.series({ service }), series)
  }
}
