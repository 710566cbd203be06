export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | 'QUERY'

/** `writes`: a GET that changes something; `safe`: a POST that changes nothing. */
export type DeclaredEffect = 'writes' | 'safe' | 'as-method'

export type JsonTypeName = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'null'

/** The subset of JSON Schema draft 4 that sites use for arguments; keywords keep its spelling. */
export type ArgumentSchema = {
  readonly title?: string
  readonly description?: string
  readonly type?: JsonTypeName | readonly JsonTypeName[]
  readonly format?: string
  readonly enum?: readonly (string | number | boolean | null)[]
  readonly default?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: boolean
  readonly exclusiveMaximum?: boolean
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly items?: ArgumentSchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly properties?: Readonly<Record<string, ArgumentSchema>>
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly additionalProperties?: boolean | ArgumentSchema
  readonly oneOf?: readonly ArgumentSchema[]
  readonly anyOf?: readonly ArgumentSchema[]
  /** On an argument or a property: it must be given (draft 3). On an object: the properties that must be given (draft 4). */
  readonly required?: boolean | readonly string[]
  readonly readonly?: boolean
  readonly context?: readonly string[]
}

export type Arguments = Readonly<Record<string, ArgumentSchema>>

/** The same names with another value for each schema. */
export const mapSchemas = <Value>(
  map: Arguments,
  toValue: (schema: ArgumentSchema, name: string) => Value,
): Readonly<Record<string, Value>> =>
  Object.fromEntries(Object.entries(map).map(([name, schema]) => [name, toValue(schema, name)]))

/** The keywords of a schema that hold other schemas, each of these replaced by its `part`, and `properties` by its `map`. */
export const mapParts = <Part, Properties>(
  { properties, items, additionalProperties, oneOf, anyOf }: ArgumentSchema,
  part: (schema: ArgumentSchema) => Part,
  map: (properties: Arguments) => Properties,
) => ({
  ...(properties && { properties: map(properties) }),
  ...(items && { items: part(items) }),
  ...(additionalProperties !== undefined && {
    additionalProperties:
      typeof additionalProperties === 'boolean' ? additionalProperties : part(additionalProperties),
  }),
  ...(oneOf && { oneOf: oneOf.map(part) }),
  ...(anyOf && { anyOf: anyOf.map(part) }),
})

/**
 * The default that the upstream has for an argument: `unannounced` where it has announced nothing of the route, `absent` where it does not
 * announce the argument; `own` for an argument of a route that only the upstream knows, whose rows say what it shows by default.
 */
export type UpstreamDefault =
  | { readonly kind: 'none' | 'unannounced' | 'absent' | 'own' }
  | { readonly kind: 'value'; readonly value: unknown }

/** One entry of a route's `endpoints`: methods that share their arguments. */
export type Endpoint = {
  readonly methods: readonly Method[]
  readonly arguments: Arguments
  /**
   * Arguments of which only the upstream knows the values and the default: they are sent as they come, neither checked nor
   * rewritten, and no default is dropped.
   */
  readonly asSent?: Readonly<Record<string, UpstreamDefault>>
  /** The route's `allow_batch.v1`; absent = no marker, and then a batch refuses it. */
  readonly allowBatch?: boolean
  /** Content that is neither JSON nor a form (files, multipart) is streamed unread; other endpoints refuse it with 415. */
  readonly acceptsUploads?: boolean
  /** What a request does whatever its method is; absent: as its method says. */
  readonly effect?: DeclaredEffect
  /** Headers that are part of the request, in lower case. */
  readonly headers?: readonly string[]
  /** Media type of JSON content, where it is another one than application/json. */
  readonly jsonType?: string
  /** Validation reads headers beside the target, so that no result is remembered for the target alone. */
  readonly readsHeaders?: boolean
}

/**
 * The kind of resource, for tags and for the order of batch items: `index` (site or namespace index), `collection`, `item`,
 * and the parts of an item.
 */
export type RowKind =
  | 'index'
  | 'batch'
  | 'collection'
  | 'item'
  | 'revisions'
  | 'revision'
  | 'autosaves'
  | 'autosave'
  | 'lookup'
  | 'action'
  | 'related'

/** The sender of the response: the gateway itself (`discovery`, `batch`), or the upstream. */
export type HandledBy = 'discovery' | 'batch' | 'upstream'

export type Row = {
  /** Stable name, e.g. `posts.item`. */
  readonly id: string
  /** For logs, metric labels and cache rules, e.g. `/site/v2/posts/{id}`. Relative to the mount, no trailing slash except the root's. */
  readonly template: string
  /** As an index writes it: a regular expression with named groups, e.g. `/site/v2/posts/(?P<id>[\d]+)`. */
  readonly pattern: string
  /** '' for routes outside a namespace. */
  readonly namespace: string
  /** Collection of the resource, e.g. `posts`; '' for none. Tags are made of it. */
  readonly collection: string
  readonly kind: RowKind
  readonly handledBy: HandledBy
  /** A route of a plugin: announced, and compared with the upstream, only where the upstream announces the namespace. */
  readonly ofPlugin?: true
  /** A route beyond the specification of sites: announced, and compared, only where the upstream announces it. */
  readonly whereRegistered?: true
  readonly endpoints: readonly Endpoint[]
}

/** Why a path is refused: the upstream might read it as another route than the gateway. */
export type PathRefusal =
  | 'ambiguous-identifier'
  | 'bad-encoding'
  | 'backslash'
  | 'control-character'
  | 'dot-segment'
  | 'encoded-slash'
  | 'not-absolute'
  | 'too-long'

/** The result of routing a method and a path relative to the service's mount. */
export type RouteMatch =
  | {
      readonly kind: 'found'
      readonly row: Row
      readonly endpoint: Endpoint
      /** Named groups of the row's pattern, percent-decoded, e.g. `{ id: '5' }`. */
      readonly pathParameters: Readonly<Record<string, string>>
      /** The canonical path: for the cache key and for the upstream. */
      readonly path: string
    }
  | { readonly kind: 'options'; readonly row: Row; readonly path: string }
  | { readonly kind: 'wrong-method'; readonly row: Row; readonly path: string }
  /** No row has this path; `path` is normalised as far as all routes agree on its meaning. */
  | { readonly kind: 'unlisted'; readonly path: string }
  | { readonly kind: 'refused'; readonly reason: PathRefusal }

export type Found = Extract<RouteMatch, { kind: 'found' }>
