import { isJsonObject } from '../../http/json-text.ts'
import type { DeclaredEffect, Endpoint, Method } from '../../service/row.ts'
import { type ApiBundle, below, dereferenced, type Located, membersOf } from './bundle.ts'
import type { RequestSchema } from './request-schema.ts'

export type ParameterLocation = 'path' | 'query' | 'header' | 'cookie'

export type Style = 'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject'

/** How the text of a parameter becomes a value. */
export type Parameter = {
  readonly name: string
  readonly location: ParameterLocation
  readonly required: boolean
  readonly style: Style
  readonly explode: boolean
  readonly allowEmptyValue: boolean
  /** `json`: the text is a JSON document (`content` with a JSON media type); `text`: another media type, not checked. */
  readonly encoding: 'style' | 'json' | 'text'
  readonly schema: RequestSchema
  /** A list in the query; the order of its items has no meaning (`x-trellis-set`). */
  readonly isSet?: true
  /** Texts of the items, or of the one value, that mean the same as no parameter in the query (`x-trellis-drop-default`). */
  readonly droppedDefault?: readonly string[]
}

export type BodyContent = {
  /** In lower case, without parameters; `*` stands for any type or subtype. */
  readonly mediaType: string
  /** The extent of the check: the value, or only media type and size. */
  readonly reading: 'json' | 'form' | 'size'
  readonly schema: RequestSchema
  readonly members: ReadonlyMap<string, Pick<Parameter, 'style' | 'explode' | 'encoding'>>
}

export type RequestBody = {
  readonly required: boolean
  /** Exact types before ranges. */
  readonly contents: readonly BodyContent[]
}

export type QueryString = {
  readonly name: string
  readonly required: boolean
  readonly content: BodyContent
}

/** A credential that an operation takes, as it appears in a request. */
export type SecurityScheme =
  | { readonly kind: 'apiKey'; readonly location: 'query' | 'header' | 'cookie'; readonly name: string }
  | { readonly kind: 'http'; readonly scheme: string }
  /** OAuth 2 and OpenID Connect: a bearer token. */
  | { readonly kind: 'bearer' }
  /** Mutual TLS, and undescribed credentials: the request does not show them. */
  | { readonly kind: 'unseen' }

/** The cache rule in the document (`x-trellis-cache`). */
export type CacheExtension = { readonly ttl: string; readonly scope?: 'public' | 'credential' }

/** The kind of a path where the templates do not show it (`x-trellis-resource`). Collections are named by their templates. */
export type ResourceExtension = {
  /** The collection that the path lists; with `id` the one that it shows an item of. */
  readonly collection?: string | undefined
  /** Path parameter with the id of the item. */
  readonly id?: string | undefined
  /** Collections of the items that a response also shows, by JSON Pointer (RFC 6901); `*` stands for each element of a list. */
  readonly members?: Readonly<Record<string, string>> | undefined
}

/** The batch route of a service with a document, below its mount. */
export const batchPath = '/batch'

/** One operation of a document, as requests need it. */
export type Operation = {
  readonly method: Method
  readonly template: string
  /** '' where the document gives none. */
  readonly operationId: string
  readonly parameters: readonly Parameter[]
  /** `in: querystring` of OpenAPI 3.2: one content describes the whole query. */
  readonly queryString: QueryString | undefined
  /** Undefined: the operation takes no content. */
  readonly body: RequestBody | undefined
  /** OR of ANDs; empty: no credential is needed. */
  readonly security: readonly (readonly SecurityScheme[])[]
  readonly cache: CacheExtension | undefined
  readonly effect: DeclaredEffect
  readonly resource: ResourceExtension | undefined
  /** Templates whose responses a write changes beside what its own path shows (`x-trellis-invalidates`). */
  readonly invalidates: readonly string[] | undefined
  /** Several operations have this method and path and differ in ways that no path shows: only method and path are checked. */
  readonly isAmbiguous: boolean
}

/** The type of its kind that an operation takes in place of application/json. */
const jsonTypeOf = (body: RequestBody | undefined): Pick<Endpoint, 'jsonType'> => {
  const types = (body?.contents ?? []).filter(({ reading }) => reading === 'json')
  const isPlain = types.length === 0 || types.some(({ mediaType }) => mediaType === 'application/json')
  const [first] = types
  return isPlain || first === undefined || first.mediaType.includes('*') ? {} : { jsonType: first.mediaType }
}

type DescribedEndpoint = Endpoint & { readonly operation: Operation }

export const endpointOfOperation = (operation: Operation): DescribedEndpoint => {
  const { method, parameters, body, effect } = operation
  const headers = parameters.flatMap(({ location, name }) => (location === 'header' ? [name] : []))
  return {
    methods: [method],
    arguments: {},
    operation,
    effect,
    headers,
    ...jsonTypeOf(body),
    readsHeaders: headers.length > 0 || parameters.some(({ location }) => location === 'cookie'),
  }
}

/** Undefined for an endpoint of another contract. */
export const operationOf = (endpoint: Endpoint | undefined): Operation | undefined =>
  (endpoint as Partial<DescribedEndpoint> | undefined)?.operation

export const isPublicOperation = ({ security }: Operation): boolean =>
  security.length === 0 || security.every((schemes) => schemes.length === 0)

/** Whether an operation takes a credential that the gateway cannot find in a request. */
export const hasUnseenCredential = ({ security }: Operation): boolean =>
  security.some((schemes) => schemes.some(({ kind }) => kind === 'unseen'))

/** TRACE would show a client fields that the gateway adds (RFC 9110 §9.3.8). */
const documentMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'] as const

/** The operations of a path with their methods. `additionalOperations` of OpenAPI 3.2 have any other one. */
export const operationsAt = (path: Located): readonly (readonly [Method, Located])[] => {
  const additional = below(path, 'additionalOperations')
  return [
    ...documentMethods.map((method) => [method, below(path, method.toLowerCase())] as const),
    ...membersOf(additional.node).map(([name]) => [name as Method, below(additional, name)] as const),
  ].filter(([, { node }]) => isJsonObject(node))
}

/** Path without a query or fragment, by which some documents distinguish operations. */
export const barePath = (key: string): string => key.replace(/[?#].*$/s, '')

export const operationKey = ({
  method,
  template,
}: {
  readonly method: string
  readonly template: string
}): string => `${method} ${template}`

/** Where each operation is described; the first of several with one method and path. */
export const locateOperations = (bundle: ApiBundle): ReadonlyMap<string, Located> => {
  const locations = new Map<string, Located>()
  const paths = below({ file: bundle.root, path: [], node: bundle.files[bundle.root] }, 'paths')
  for (const [key] of membersOf(paths.node)) {
    const path = dereferenced(bundle, below(paths, key))
    if (path === undefined || !key.startsWith('/')) continue
    for (const [method, located] of operationsAt(path)) {
      const position = operationKey({ method, template: barePath(key) })
      if (!locations.has(position)) locations.set(position, located)
    }
  }
  return locations
}

/** Does the document say that a response of the operation sets a cookie? */
export const documentsCookie = (bundle: ApiBundle, operation: Located): boolean => {
  const responses = below(operation, 'responses')
  return membersOf(responses.node).some(([status]) => {
    const response = dereferenced(bundle, below(responses, status))
    const headers = response === undefined ? [] : membersOf(below(response, 'headers').node)
    return headers.some(([name]) => name.toLowerCase() === 'set-cookie')
  })
}

/** The description of the response with a status: the status itself before its class (`2XX`) before `default`. */
export const responseFor = (bundle: ApiBundle, operation: Located, status: number): Located | undefined => {
  const responses = below(operation, 'responses')
  const names = [String(status), `${Math.floor(status / 100)}XX`, `${Math.floor(status / 100)}xx`, 'default']
  const name = names.find((candidate) => below(responses, candidate).node !== undefined)
  return name === undefined ? undefined : dereferenced(bundle, below(responses, name))
}
