import { randomBytes } from 'node:crypto'
import type { LimitsConfig, SiteConfig } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { anyOriginOf } from '../http/headers/cors.ts'
import { mayHaveRights } from '../http/headers/credential-headers.ts'
import {
  ownJsonHeaders,
  type RequestHeaders,
  requestHeader,
  withHeader,
} from '../http/headers/header-lines.ts'
import { asciiJson } from '../http/json-text.ts'
import { memoize } from '../http/memo.ts'
import { discard, type GatewayResponse, type ResponseOrPromise } from '../http/message.ts'
import { isGetOrHead } from '../http/methods.ts'
import { urlAtHost } from '../http/targets.ts'
import { withOwnBatch } from '../service/batch-row.ts'
import type { Connected, Connection, LocalDocuments } from '../service/connection.ts'
import { type Contract, type ErrorShape, planByMediaType, type RefusedRequest } from '../service/contract.ts'
import { errorText } from '../service/problem.ts'
import { createRouter, createRowsInUse } from '../service/router.ts'
import type { Found, Row } from '../service/row.ts'
import { inspectForm } from './arguments/inspect-form.ts'
import { createSiteValidator } from './arguments/site-validator.ts'
import { interfaceItems } from './batch.ts'
import { createAnyOrigins } from './index/any-origins.ts'
import {
  createDiscovery,
  type Discovery,
  namedList,
  refusedText,
  rowsBeforeIndex,
} from './index/discovery.ts'
import type { IndexResponse } from './index/index-source.ts'
import { siteNameTable } from './names/name-table.ts'
import { createNames, type Names, rowsInOtherNames } from './names/names.ts'
import { requestMeaning } from './request-meaning.ts'
import { coreRows } from './routes/core-rows.ts'
import { createPropertyReaches, type PropertyReaches } from './routes/property-reaches.ts'
import { siteRows } from './routes/route-table.ts'
import { createSiteTagger } from './tags/site-tagger.ts'
import { siteTags } from './tags/tags.ts'
import { actsAtInterface, uncacheableReasonOf } from './tags/uncacheable.ts'

const indexTimeoutMs = 10_000
const routeTimeoutMs = 2_000
const indexRetryMs = 5_000

type SiteDocument = Extract<ReturnType<Discovery['options']>, { readonly kind: 'document' }>

/** Gives the documents of a site with links for the service that was asked: they are made for one root. */
const createDocumentResponse = (madeFor: string) => {
  const namesFor = memoize((publicRoot) =>
    createNames({
      mode: 'same',
      table: siteNameTable,
      publicRoot,
      learned: { root: madeFor },
      upstreamRoots: () => [madeFor],
    }),
  )
  return (
    { fields, content }: SiteDocument,
    { address: { publicRoot } }: { readonly address: { readonly publicRoot: string } },
  ): GatewayResponse => {
    const isAsMade = publicRoot === madeFor
    const document = isAsMade ? content : namesFor(publicRoot).fromUpstreamDocument(content)
    const lines = isAsMade ? fields : withHeader(fields, 'Link', `<${publicRoot}/>; rel="https://api.w.org/"`)
    return { status: 200, headers: [...lines, 'Content-Length', String(document.length)], content: document }
  }
}

/** The schema from the upstream, or the table's arguments without one. */
const askedOptions = async (
  ask: () => ResponseOrPromise,
  fallback: () => GatewayResponse,
): Promise<GatewayResponse> => {
  try {
    const response = await ask()
    if (response.status === 200) return response
    discard(response.content)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.facts.fault === 'client') throw error
  }
  return fallback()
}

type SiteResponsesOptions = {
  readonly discovery: Discovery
  /** The root that the documents of `discovery` are made for. */
  readonly publicRoot: string
  /** Is the index that was read before still valid? */
  mayRemember(): boolean
}

/**
 * Writes to these, and to what no row lists, can change the site's identity or its routes. The icon and the logo are media, the front
 * page is a page.
 */
const describedBy: ReadonlySet<string> = new Set(['settings', 'plugins', 'themes', 'media', 'pages', ''])

/** Requests that the gateway answers itself for a site: its documents and the batch. */
const siteResponses = (options: SiteResponsesOptions): LocalDocuments => {
  const { discovery } = options
  const asResponse = createDocumentResponse(options.publicRoot)
  return {
    index: async (exchange, row) => {
      const { query, service } = exchange
      if (!options.mayRemember()) discovery.invalidate()
      const response =
        row.namespace === ''
          ? await discovery.index(query)
          : await discovery.namespaceIndex(row.namespace, query)
      switch (response.kind) {
        case 'document':
          return asResponse(response, service)
        case 'identity-unknown':
          throw new GatewayError('upstream_unreachable', {
            detail: "The site's own index has not been read yet.",
            retryAfterSeconds: 5,
          })
        case 'unknown-namespace':
          throw new GatewayError('no_route')
      }
    },
    written: (collection) => {
      if (describedBy.has(collection)) discovery.invalidate()
    },
    options: ({ service }, row, ask) => {
      const response = discovery.options(row)
      return response.kind === 'document'
        ? asResponse(response, service)
        : askedOptions(ask, () => asResponse(response.fallback, service))
    },
  }
}

const maxIndexBytes = 8 * 1024 * 1024

const maxResponseBytes = 1024 * 1024

const unknownOrigin = (): string => `https://${randomBytes(8).toString('hex')}.invalid`

/** Fetches the index of a site with an unknown origin: the response shows whether the site allows every origin. */
const createIndexFetch = (get: Connection['get'], basePath: string, targetOf: (path: string) => string) => {
  const ask = (target: string, signal: AbortSignal, fields: readonly string[], maxBytes: number) =>
    get({ target, headers: [...ownJsonHeaders, ...fields], signal }, maxBytes)
  const anyOrigins = createAnyOrigins(async (path) => {
    const origin = unknownOrigin()
    const signal = AbortSignal.timeout(routeTimeoutMs)
    const { status, headers: fields } = await ask(
      targetOf(path),
      signal,
      ['origin', origin],
      maxResponseBytes,
    )
    if (status >= 500) throw new RangeError(`the upstream answered ${status}`)
    return anyOriginOf(fields, origin)
  })
  const askIndex = (signal: AbortSignal, fields: readonly string[]) =>
    ask(`${basePath}/`, signal, fields, maxIndexBytes)
  const fetchIndex = async (signal: AbortSignal): Promise<IndexResponse> => {
    const origin = unknownOrigin()
    const first = await askIndex(signal, ['origin', origin])
    const isRefused = first.status >= 400 && first.status < 500
    // A plugin may refuse other origins: fetch the index without one then.
    const { status, headers: fields, content } = isRefused ? await askIndex(signal, []) : first
    anyOrigins.indexRead(status === 200 ? anyOriginOf(fields, origin) : undefined)
    if (content === undefined) throw new RangeError('the index of the upstream is larger than 8 MiB')
    return { status, content }
  }
  return { fetchIndex, anyOrigins }
}

const hintsOf = (discovery: Discovery): readonly string[] => {
  const differences = discovery
    .drift()
    .filter(({ kind, matters }) => matters && (kind === 'argument-changed' || kind === 'argument-added'))
  const names = new Set(differences.map(({ route, method, argument }) => `${argument} of ${method} ${route}`))
  const refusalHint = refusedText(discovery.learned())
  const valueHint = `announces other values than WordPress itself; Trellis sends as they come: ${namedList([...names])}`
  return [...(names.size === 0 ? [] : [valueHint]), ...(refusalHint === undefined ? [] : [refusalHint])]
}

/** Reads the index of a site, makes its documents, and translates its names. */
const connectSite = (
  config: SiteConfig,
  contract: Contract,
  properties: PropertyReaches,
  connection: Connection,
): Connected => {
  const { publicRoot, hostHeader: hostField, targets, get } = connection
  const basePath = config.upstream.basePath === '/' ? '' : config.upstream.basePath
  const ownRoots = targets.map((origin) => `${origin}${basePath}`)
  /** Translates to the root of one host, or to the root of the service. */
  const namesAt = (root: string, rootHost: string): Names =>
    createNames({
      mode: config.names,
      table: siteNameTable,
      publicRoot: root,
      learned: discovery.upstream,
      upstreamRoots: (learned) => {
        if (learned === undefined) return ownRoots
        // An upstream that gets the client's host may write its links with it.
        const isOfHost = rootHost !== hostField && new URL(learned).host === hostField
        return [learned, ...(isOfHost ? [urlAtHost(learned, rootHost)] : []), ...ownRoots]
      },
    })
  const index = createIndexFetch(get, basePath, (path) => basePath + names.toUpstreamTarget(path, ''))
  if (config.discovery.source === 'upstream') contract.learn(rowsBeforeIndex(contract.rows), [])
  const { identity } = config.discovery.source === 'static' ? config.discovery : { identity: undefined }
  const discovery: Discovery = createDiscovery({
    service: config.name,
    clock: connection.clock,
    rows: contract.rows,
    registered: contract.registered,
    publicRoot,
    upstreamBasePath: basePath,
    source:
      identity === undefined
        ? {
            kind: 'upstream',
            refreshMs: config.discovery.refreshMs,
            timeoutMs: indexTimeoutMs,
            retryAfterMs: indexRetryMs,
          }
        : {
            kind: 'static',
            identity: {
              name: identity.name,
              description: identity.description,
              url: identity.url,
              home: identity.home,
              gmt_offset: String(identity.gmtOffset),
              timezone_string: identity.timezone,
            },
          },
    unlistedRoutes: config.unlistedRoutes,
    undeclaredParameters: config.parameters.unknown,
    fetchIndex: index.fetchIndex,
    toPublic: (content) => names.fromUpstreamDocumentInPieces(content),
    rowsLearned: (listedRows, learnedRows) => {
      contract.learn(listedRows, learnedRows)
      properties.learn([...listedRows, ...learnedRows])
      connection.rowsLearned()
    },
    tableChanged: connection.tableChanged,
    report: connection.report,
  })
  const names = namesAt(publicRoot, hostField)
  return {
    translationAt: namesAt,
    local: siteResponses({ publicRoot, discovery, mayRemember: connection.mayRemember }),
    // Without readings of the index nothing that was learnt of a route would end.
    anyOrigins: identity === undefined ? index.anyOrigins : undefined,
    upstreamRoutes: {
      ...discovery,
      learned: () => discovery.learned().rows,
      refused: () => refusedText(discovery.learned()),
      hints: () => hintsOf(discovery),
    },
  }
}

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

const multipart = /^multipart\/form-data\s*(?:;|$)/i

/** WordPress reads the parameters of a multipart form on every route. */
const isMultipart = (method: string, fields: RequestHeaders): boolean =>
  !isGetOrHead(method) && multipart.test(requestHeader(fields, 'content-type') ?? '')

/** Parameters of the path by which the tags of a write are found: WordPress takes those of a form before them. */
const namesInPath = (match: Found | undefined): readonly string[] =>
  match !== undefined && Object.hasOwn(siteTags, match.row.collection)
    ? Object.keys(match.pathParameters)
    : []

/** The interface of a WordPress. */
export const createSiteContract = (
  config: SiteConfig,
  { limits, policyFor }: { readonly limits: LimitsConfig; readonly policyFor: Contract['policyFor'] },
): Contract => {
  const upstreamRoutes = publicRows(config)
  const rows = withOwnBatch(upstreamRoutes, { items: config.batch.maxItems, pathCharacters: limits.urlBytes })
  const batchEndpoints = new Set(rows.filter(({ kind }) => kind === 'batch').flatMap((row) => row.endpoints))
  const properties = createPropertyReaches(config.cache.properties)
  const contract: Contract = {
    name: 'site',
    rows,
    registered: upstreamRoutes,
    ...createRowsInUse(createRouter(rows).find),
    unlisted: config.unlistedRoutes === 'refuse' ? 'refuse' : 'pass',
    hasIndex: true,
    hasRoutes: true,
    options: 'own',
    methodMeant: requestMeaning,
    sendsMethodOverride: true,
    // WordPress hides that there is something under the path.
    wrongMethod: () => new GatewayError('no_route'),
    challenge: undefined,
    contentPlan: (method, endpoint, fields) =>
      isMultipart(method, fields) && !batchEndpoints.has(endpoint)
        ? 'stream'
        : planByMediaType(method, endpoint, fields),
    inspectContent: (method, fields, match) => inspectForm(method, fields, namesInPath(match)),
    validator: createSiteValidator({
      limits,
      unknownParameters: config.parameters.unknown,
      trackingParameters: config.parameters.tracking,
    }),
    declaredHeaders: [],
    secretParameters: [],
    keyHeaders: [],
    items: interfaceItems,
    policyFor,
    uncacheableReasonOf,
    actsAsWrite: actsAtInterface,
    tagger: createSiteTagger({ service: config.name, table: siteTags, properties }),
    // The response to an upload names the new item and what it belongs to, which bounds what has to be invalidated.
    readsWriteResponse: ({ kind }, isUpload) => !isUpload || kind === 'collection',
    invalidatesTargets: false,
    errors: siteShape,
    connect: (connection) => connectSite(config, contract, properties, connection),
    describe: () => ({}),
  }
  return contract
}

const json = 'application/json; charset=UTF-8'

/** What WordPress sends with every response of its interface. */
const interfaceFields = (publicRoot: string): string[] => [
  ...['X-Robots-Tag', 'noindex'],
  ...['Link', `<${publicRoot}/>; rel="https://api.w.org/"`],
]

/** Lists that WordPress shows to anonymous clients, unless a parameter asks for private data. */
const publicLists: ReadonlySet<string> = new Set(['posts', 'pages', 'media', 'blocks', 'categories', 'tags'])
/** `_envelope` moves what is here into the content. */
const asksForMore = /context|post|_envelope/i

/** The methods that the client may use, as far as they follow from the route and the credential's presence. */
const allowedTo = ({ row, query, headers: fields }: RefusedRequest): string | undefined => {
  if (row.kind === 'batch') return 'POST'
  const isPublic = row.kind === 'collection' && publicLists.has(row.collection)
  return isPublic && !mayHaveRights(fields) && !asksForMore.test(query) ? 'GET' : undefined
}

/** WordPress sends these to logged-in users; any credential is taken for one of those. */
const callerFields = (fields: RequestHeaders): string[] =>
  mayHaveRights(fields)
    ? [
        ...['Expires', 'Wed, 11 Jan 1984 05:00:00 GMT'],
        ...['Cache-Control', 'no-cache, must-revalidate, max-age=0, no-store, private'],
      ]
    : []

/** Errors as WordPress writes them. */
export const siteShape: ErrorShape = {
  contentType: json,
  body: (error) => ({
    code: error.facts.siteCode ?? `trellis_${error.code}`,
    message: errorText(error),
    data: { status: error.facts.status },
  }),
  text: asciiJson,
  headers: interfaceFields,
  refusal: (request, { code }) => {
    const general = [...interfaceFields(request.publicRoot), 'X-Content-Type-Options', 'nosniff']
    // WordPress makes this check first, and answers as a script.
    if (code === 'rest_callback_invalid')
      return { contentType: 'application/javascript; charset=UTF-8', headers: general }
    const allow = allowedTo(request)
    const fields = [
      ...general,
      ...(allow === undefined ? [] : ['Allow', allow]),
      ...callerFields(request.headers),
    ]
    return { contentType: json, headers: fields }
  },
  itemBody: (_status, body) => body,
  batchHeaders: callerFields,
}
