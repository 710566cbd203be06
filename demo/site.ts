import { type Clock, systemClock } from '../src/clock.ts'
import { requestHeader } from '../src/http/headers/header-lines.ts'
import { createRouter } from '../src/service/router.ts'
import { createSiteValidator } from '../src/wordpress/arguments/site-validator.ts'
import { keyNames, namespaceNames, segmentNames } from '../src/wordpress/names/name-table.ts'
import { rowsInOtherNames } from '../src/wordpress/names/names.ts'
import { siteRows } from '../src/wordpress/routes/route-table.ts'
import {
  type EmbeddedReply,
  type EmbeddedSettings,
  type EmbeddedUpstream,
  lenientValidation,
  type ReceivedRequest,
  serveEmbedded,
} from './embedded-server.ts'
import { batchResource } from './site/batch.ts'
import type { Site, SiteResponse } from './site/call.ts'
import { type Caller, callerOf } from './site/caller.ts'
import { type Dialect, namesOf } from './site/dialect-names.ts'
import { createDispatcher, type Dispatcher } from './site/dispatcher.ts'
import { createEmbedding } from './site/embedding.ts'
import { optionsOf } from './site/index-document.ts'
import { resourcesOf } from './site/resources.ts'
import { seedStore } from './site/seed.ts'
import { SiteFault } from './site/site-fault.ts'
import { createStore } from './site/store.ts'
import { unlistedRows } from './site/unlisted-rows.ts'
import { wireReply } from './site/wire.ts'

export type EmbeddedSiteOptions = EmbeddedSettings & {
  /** Path of the REST root, e.g. `/index.php/wp-json`. */
  readonly basePath: string
  /** The site's own address: every absolute URL in a response begins with it. */
  readonly home: string
  readonly dialect: Dialect
  readonly limits: Parameters<typeof createSiteValidator>[0]['limits']
  readonly clock?: Clock
}

type Target = { readonly method: string; readonly path: string; readonly query: string }

/** Method and path as WordPress reads them: parameters can replace both, which is a trap for a gateway. */
const understood = (request: ReceivedRequest, prefix: string): Target | undefined => {
  const mark = request.target.indexOf('?')
  const path = mark === -1 ? request.target : request.target.slice(0, mark)
  const query = mark === -1 ? '' : request.target.slice(mark + 1)
  const parameters = new URLSearchParams(query)
  const override = parameters.get('_method') ?? requestHeader(request.fields, 'x-http-method-override')
  const method = (override ?? request.method).toUpperCase()
  const route = parameters.get('rest_route')
  if (route !== null) return { method, path: route, query }
  if (path !== prefix && !path.startsWith(`${prefix}/`)) return undefined
  return { method, path: path.slice(prefix.length) || '/', query }
}

const notFound: EmbeddedReply = {
  status: 404,
  fields: { 'Content-Type': 'text/html; charset=UTF-8' },
  content: Buffer.from('<!DOCTYPE html><title>Page not found</title><p>Page not found</p>\n'),
}

/** WordPress takes the nonce for a cookie's proof; without a cookie every nonce is wrong. */
const hasBadNonce = (request: ReceivedRequest, query: string, caller: Caller): boolean =>
  caller.role === 'anonymous' &&
  (requestHeader(request.fields, 'x-wp-nonce') !== undefined || new URLSearchParams(query).has('_wpnonce'))

const badNonce = new SiteFault(403, 'rest_cookie_invalid_nonce', 'Cookie check failed')

const respondToOptions = (site: Site, dispatcher: Dispatcher, path: string): SiteResponse => {
  const methods = ['GET', 'POST', 'DELETE']
  const row = methods.map((method) => dispatcher.match(method, path)?.row).find((one) => one !== undefined)
  return {
    status: 200,
    headers: row === undefined ? {} : { Allow: 'GET' },
    body: row === undefined ? [] : optionsOf(site, row),
  }
}

/** Starts a site that answers every row of the site contract as WordPress does, from seeded content in memory. */
export const startEmbeddedSite = (options: EmbeddedSiteOptions): Promise<EmbeddedUpstream> => {
  const names = namesOf(options.dialect)
  const prefix = options.basePath.replace(/\/$/, '')
  const home = options.home.replace(/\/$/, '')
  const unlisted = unlistedRows(names)
  const store = createStore()
  seedStore(store, home)
  const clock = options.clock ?? systemClock
  const rows =
    options.dialect === 'neutral'
      ? siteRows
      : rowsInOtherNames(siteRows, { namespaces: namespaceNames, keys: keyNames, segments: segmentNames })
  const site: Site = {
    home,
    root: `${home}${prefix}`,
    names,
    rows: [...rows, ...unlisted],
    store,
    now: () => clock.now(),
  }
  const resourceOf = resourcesOf(names)
  const batch = batchResource(() => dispatcher)
  const dispatcher: Dispatcher = createDispatcher({
    site,
    unlisted,
    find: createRouter(rows).find,
    validate: createSiteValidator({ limits: options.limits, ...lenientValidation }).validate,
    resourceOf: (row) => (row.kind === 'batch' ? batch : resourceOf(row)),
  })
  const embed = createEmbedding(dispatcher, site.root)
  return serveEmbedded((request) => {
    const target = understood(request, prefix)
    if (target === undefined) return notFound
    const caller = callerOf(requestHeader(request.fields, 'authorization'), store.users)
    const noCache = hasBadNonce(request, target.query, caller)
    const { method } = request
    const context = { method, query: target.query, fields: request.fields, caller, root: site.root, noCache }
    if (noCache) return wireReply({ status: 403, headers: {}, body: badNonce.body }, context)
    if (target.method === 'OPTIONS')
      return wireReply(respondToOptions(site, dispatcher, target.path), context)
    const response = dispatcher.response({
      ...target,
      fields: request.fields,
      content: request.content,
      caller,
    })
    const body = embed(response.body, target.query, caller)
    // An error behind an overridden method is not to be kept under the method that was sent.
    const overridden = request.fields['x-http-method-override'] !== undefined && response.status >= 400
    return wireReply({ ...response, body }, { ...context, noCache: overridden })
  }, options)
}
