import type { LimitsConfig, SiteConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { withOwnBatch } from '../service/batch-row.ts'
import { planByMediaType } from '../service/content-plan.ts'
import type { Contract } from '../service/contract.ts'
import { createRouter, createRowsInUse } from '../service/router.ts'
import type { Row } from '../service/row.ts'
import { siteShape } from './answers.ts'
import { requestMeaning } from './arguments/request-meaning.ts'
import { createSiteValidator } from './arguments/site-validator.ts'
import { interfaceItems } from './batch.ts'
import { siteNameTable } from './names/name-table.ts'
import { rowsInOtherNames } from './names/names.ts'
import { coreRows } from './routes/core-rows.ts'
import { siteRows } from './routes/route-table.ts'
import { connectSite } from './site.ts'
import { actsAtInterface, sensitivityOf } from './tags/sensitivity.ts'
import { createSiteTagger } from './tags/site-tagger.ts'
import { siteTags } from './tags/tags.ts'

const withCore: readonly Row[] = [...siteRows, ...coreRows]

/**
 * With `names: same` clients use the upstream's own spelling: the neutral one where its root ends in the neutral
 * segment, WordPress's everywhere else.
 */
const publicRows = ({ names, upstream }: SiteConfig): readonly Row[] => {
  const rows = upstream.targets === 'embedded' ? siteRows : withCore
  return names === 'wordpress' || upstream.basePath.endsWith('/site-json')
    ? rows
    : rowsInOtherNames(rows, siteNameTable)
}

/** The interface of a WordPress. */
export const createSiteContract = (
  config: SiteConfig,
  { limits, policyFor }: { readonly limits: LimitsConfig; readonly policyFor: Contract['policyFor'] },
): Contract => {
  const announced = publicRows(config)
  const rows = withOwnBatch(announced, { items: config.batch.maxItems, pathCharacters: limits.urlBytes })
  const contract: Contract = {
    name: 'site',
    rows,
    announced,
    ...createRowsInUse(createRouter(rows).find),
    unlisted: config.unlistedRoutes === 'refuse' ? 'refuse' : 'pass',
    announces: true,
    hasRoutes: true,
    options: 'own',
    meaning: requestMeaning,
    // WordPress hides that there is something under the path.
    wrongMethod: () => new GatewayError('no_route'),
    challenge: undefined,
    contentPlan: planByMediaType,
    validator: createSiteValidator({
      limits,
      unknownParameters: config.parameters.unknown,
      trackingParameters: config.parameters.tracking,
    }),
    declaredFields: [],
    keyParameters: [],
    keyFields: [],
    items: interfaceItems,
    policyFor,
    sensitivityOf,
    actsAsWrite: actsAtInterface,
    tagger: createSiteTagger({ service: config.name, table: siteTags, properties: config.cache.properties }),
    // The response to an upload names the new item and what it belongs to, which bounds what has to be invalidated.
    readsWriteResponse: ({ kind }, isUpload) => !isUpload || kind === 'collection',
    invalidatesTargets: false,
    errors: siteShape,
    connect: (connection) => connectSite(config, contract, connection),
    describe: () => ({}),
  }
  return contract
}
