import { batch } from './batch.ts'
import { cache } from './cache.ts'
import { type DashboardFacts, dashboardJson } from './dashboard.ts'
import { overview } from './overview.ts'
import { runtime } from './runtime.ts'
import { upstreams } from './upstreams.ts'

const all: readonly DashboardFacts[] = [overview, cache, batch, upstreams, runtime]

/** Files of dashboards/ by name, as `npm run dashboards` writes them and a test compares them. */
export const dashboardFiles: ReadonlyMap<string, string> = new Map(
  all.map((facts) => [`${facts.name}.json`, `${JSON.stringify(dashboardJson(facts), null, 2)}\n`]),
)
