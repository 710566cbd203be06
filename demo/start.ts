import { plantRows } from '../src/contracts/plants/route-table.ts'
import type { Row } from '../src/contracts/row.ts'
import { createPlantsValidator } from '../src/request/plants-validator.ts'
import { createRouter } from '../src/request/router.ts'
import { createSiteValidator } from '../src/request/site-validator.ts'
import type { EmbeddedUpstream } from './embedded-server.ts'
import { startEmbeddedPlants } from './plants.ts'
import { startEmbeddedSite } from './site.ts'

/** The embedded servers strip or let through what WordPress does, whatever the gateway in front is set to. */
const lenient = { unknownParameters: 'strip', trackingParameters: [] } as const

type Limits = Parameters<typeof createSiteValidator>[0]['limits']

/** Starts the demo's plant store. */
export const startPlants = (
  { basePath, limitParameter }: { readonly basePath: string; readonly limitParameter: string },
  limits: Limits,
): Promise<EmbeddedUpstream> => {
  const { find } = createRouter(plantRows({ limitParameter }))
  const { validate } = createPlantsValidator({ limits, limitParameter, ...lenient })
  return startEmbeddedPlants({ basePath, find, validate })
}

/** Starts the demo's site; `rows` are those of the contract in its own spelling. */
export const startSite = (
  site: Pick<Parameters<typeof startEmbeddedSite>[0], 'basePath' | 'home' | 'dialect'> & {
    readonly rows: readonly Row[]
  },
  limits: Limits,
): Promise<EmbeddedUpstream> => {
  const { find } = createRouter(site.rows)
  const { validate } = createSiteValidator({ limits, ...lenient })
  return startEmbeddedSite({ ...site, find, validate })
}
