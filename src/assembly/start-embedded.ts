import type { ServiceConfig } from '../config/config.ts'
import type { LimitsConfig } from '../config/edge-config.ts'
import { plantRows } from '../contracts/plants/route-table.ts'
import { siteRows } from '../contracts/site/route-table.ts'
import type { EmbeddedUpstream } from '../demo/embedded-server.ts'
import { startEmbeddedPlants } from '../demo/plants.ts'
import { startEmbeddedSite } from '../demo/site.ts'
import { createRouter } from '../routing/router.ts'
import { createPlantsValidator } from '../validation/plants-validator.ts'
import { createSiteValidator } from '../validation/site-validator.ts'
import { wordpressRows } from './service-contract.ts'

/** What the embedded servers leave out or let through, as WordPress does; not what the gateway in front is set to. */
const lenient = { unknownParameters: 'strip', trackingParameters: [] } as const

/** Starts the server that plays the upstream of a service with `targets: [embedded]`; undefined where none is wanted. */
export const startEmbedded = async (
  service: ServiceConfig,
  limits: LimitsConfig,
  publicUrl: string,
): Promise<EmbeddedUpstream | undefined> => {
  if (service.contract === 'open' || service.upstream.targets !== 'embedded') return undefined
  const { basePath } = service.upstream
  if (service.contract === 'plants') {
    const { limitParameter } = service
    const { find } = createRouter(plantRows({ limitParameter }))
    const { validate } = createPlantsValidator({ limits, limitParameter, ...lenient })
    return startEmbeddedPlants({ basePath, find, validate })
  }
  const isNeutral = service.names === 'same' && basePath.endsWith('/site-json')
  const rows = isNeutral ? siteRows : wordpressRows()
  const { find } = createRouter(rows)
  const { validate } = createSiteValidator({ limits, ...lenient })
  return startEmbeddedSite({
    basePath,
    home: new URL(publicUrl).origin,
    dialect: isNeutral ? 'neutral' : 'wordpress',
    rows,
    find,
    validate,
  })
}
