import type { LimitsConfig, OpenApiConfig, PlantsConfig } from '../config/config.ts'
import { isJsonObject } from '../http/json-text.ts'
import { targetParts } from '../http/targets.ts'
import { withOwnBatch } from '../service/batch-row.ts'
import { type Contract, type ItemRules, type ItemTarget, piecesOf, validatorOf } from '../service/contract.ts'
import type { Endpoint, Row } from '../service/row.ts'
import { decodedOctets, foldPhpName } from './arguments/php-query.ts'
import { createSiteValidator } from './arguments/site-validator.ts'
import { siteItemOrder } from './item-order.ts'
import { siteRows } from './routes/route-table.ts'

/**
 * Parameters that mean something on a separate request and nothing inside a batch, where WordPress hands the item's
 * query to the route only. Sent as a separate request the item must not have them.
 */
const inertParameters: ReadonlySet<string> = new Set([
  '_method',
  '_envelope',
  '_embed',
  '_jsonp',
  '_pretty',
  '_locale',
  '_wpnonce',
  'rest_route',
])

const isInert = (pair: string): boolean =>
  inertParameters.has(foldPhpName(decodedOctets(pair.split('=', 1)[0] ?? '')))

const withoutInert = (query: string): string =>
  query
    .split('&')
    .filter((pair) => pair !== '' && !isInert(pair))
    .join('&')

/** Characters that a request target cannot have are percent-encoded; control characters become `_` as PHP's parse_url makes them. */
const targetText = (text: string): string =>
  text
    .replaceAll(/\p{Surrogate}/gu, '\ufffd')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern is for these characters
    .replaceAll(/[\x00-\x1f\x7f]/g, '_')
    .replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent)
    .replaceAll(/["<>\\^`{|}]/g, encodeURIComponent)

/** `scheme://host:port` or `//host:port` in front of a path; WordPress ignores the host there, and so does the gateway. */
const authorityPattern = /^(?:[a-z][a-z0-9+.-]*:)?\/\/([^/?#]*)/i

/** PHP's parse_url gives up on an empty host and on a port that is not one. */
const isAuthority = (authority: string): boolean => {
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  const port = /:(\d*)$/.exec(host)
  return host !== '' && !host.startsWith(':') && (port === null || Number(port[1]) <= 65_535)
}

/**
 * Can a route be meant? Escapes and dot segments never match one inside a batch, and elsewhere could mean another path. An empty
 * segment may stand within an identifier, and nowhere else: the row shows which.
 */
const isPlainPath = (path: string): boolean =>
  /^\/(?!\/)/.test(path) && !/[%\\]|\/\.{1,2}(?:\/|$)/.test(path) && (path === '/' || !path.endsWith('/'))

/** Reads an item's `path` as WordPress does: relative to the service's root, host ignored, fragment dropped. */
export const parseItemPath = (text: string): ItemTarget => {
  const authority = authorityPattern.exec(text)
  if (authority !== null && !isAuthority(authority[1] ?? '')) return { kind: 'unparsable' }
  const relative = (authority === null ? text : text.slice(authority[0].length)).split('#', 1)[0] ?? ''
  const parts = targetParts(relative)
  const path = targetText(parts.path)
  if (!isPlainPath(path)) return { kind: 'no-route' }
  return { kind: 'target', path, query: withoutInert(targetText(parts.query)) }
}

/** Refusals that WordPress makes before it runs anything: no such route, not for this caller, not this envelope. */
const refusesWhole = (status: number, body: unknown): boolean => {
  if (!isJsonObject(body) || typeof body['code'] !== 'string' || !isJsonObject(body['data'])) return false
  const { data, code } = body
  if (data['status'] !== status) return false
  if (status === 404) return code === 'rest_no_route'
  if (status === 400) {
    const { params } = data
    return code === 'rest_invalid_param' && isJsonObject(params) && 'requests' in params
  }
  return status === 401 || status === 403
}

/** Of the items of a batch; WordPress may be behind a document too. */
const siteItemHeaders: Pick<ItemRules, 'shownHeaders' | 'isGeneralLink' | 'prefixesWithoutEffect'> = {
  // Retry-After is only in the gateway's own errors.
  shownHeaders: ['X-WP-Total', 'X-WP-TotalPages', 'Link', 'Location', 'Allow', 'Retry-After'],
  // Every response of a site links to the API itself; the envelope of an item does not.
  isGeneralLink: (link) => link.includes('rel="https://api.w.org/"'),
  prefixesWithoutEffect: ['x-wp-'],
}

/** An empty body is none. */
export const interfaceItems: ItemRules = {
  target: parseItemPath,
  hasContent: (body) => typeof body === 'object' && body !== null && Object.keys(body).length > 0,
  order: siteItemOrder,
  ...siteItemHeaders,
  // It has the same name in all dialects.
  upstreamBatch: { route: '/batch/v1', refusesWhole },
}

const withAnyBody = (endpoint: Endpoint): Endpoint => {
  const requests = endpoint.arguments['requests'] ?? {}
  const { items = {} } = requests
  const properties = { ...items.properties, body: {} }
  return {
    ...endpoint,
    arguments: { ...endpoint.arguments, requests: { ...requests, items: { ...items, properties } } },
  }
}

/** The batch route of a service with a document: that of sites, with any JSON as body. */
const documentBatchRow = (path: string, items: number, { urlBytes }: LimitsConfig): Row | undefined => {
  const rows = siteRows
    .filter(({ kind }) => kind === 'batch')
    .map((row) => ({
      ...row,
      template: path,
      pattern: path,
      endpoints: row.endpoints.map(withAnyBody),
    }))
  return withOwnBatch(rows, { items, pathCharacters: urlBytes })[0]
}

/** The contract of a document with the batch route under a path of its own, where the service has one. */
export const withBatch = (
  batchPath: string,
  { batch }: OpenApiConfig | PlantsConfig,
  limits: LimitsConfig,
  contract: Contract,
): Contract => {
  const row = batch && documentBatchRow(batchPath, batch.maxItems, limits)
  const [endpoint] = row?.endpoints ?? []
  if (row === undefined || endpoint === undefined) return contract
  const envelopes = createSiteValidator({ limits, unknownParameters: 'strip', trackingParameters: [] })
  return {
    ...contract,
    items: { ...contract.items, ...siteItemHeaders },
    rows: [...contract.rows, row],
    find: (method, path) => {
      if (path !== batchPath) return contract.find(method, path)
      return method === 'POST'
        ? { kind: 'found', row, endpoint, pathParameters: {}, path }
        : { kind: 'wrong-method', row, path }
    },
    validator: validatorOf(function* (input) {
      if (input.row !== row) return yield* piecesOf(contract.validator, input)
      const validation = yield* envelopes.validateInPieces(input)
      if (validation.kind === 'valid') return validation
      return { ...validation, body: contract.errors.itemBody(validation.status, validation.body) }
    }),
  }
}
