import { atOnce, type Pieces } from '../../http/bodies/turns.ts'
import {
  isJsonObject,
  type JsonObject,
  nestingDepth,
  openBrace,
  ownMember,
  parsedJson,
  skipSpace,
  stringEnd,
  valueEnd,
} from '../../http/json-text.ts'
import { memoizeByObject } from '../../http/memo.ts'
import type { IndexRefusal } from '../../service/connection.ts'
import { routeTemplate } from '../../service/route-paths.ts'
import { type ArgumentSchema, type Endpoint, mapParts, mapSchemas, type Row } from '../../service/row.ts'

/** WordPress 6.9 announces 133 routes in 190 kB, 16 levels deep; large plugins add many hundreds. Octets bound the routes. */
const limits = {
  octets: 8 * 1024 * 1024,
  /** Of one route, or of another member. */
  member: 1024 * 1024,
  depth: 64,
  rootLength: 2048,
} as const

/** Characters of the routes that are read in one piece: about a millisecond. */
const charactersOfPiece = 32 * 1024

/** The description that an upstream gives of itself at its REST root, checked for shape and size only. */
export type IndexDocument = {
  /** All members but `routes`. */
  readonly identity: JsonObject
  readonly namespaces: readonly string[]
  /** Pattern → entry, in the order announced: the first that fits a path answers it. */
  readonly routes: ReadonlyMap<string, JsonObject>
}

/** An index, or why the document is not usable as one. */
type IndexReading =
  | { readonly kind: 'index'; readonly index: IndexDocument }
  | { readonly kind: 'refused'; readonly reason: IndexRefusal }

const refused = (reason: IndexRefusal): IndexReading => ({ kind: 'refused', reason })

/** A list of PHP from which something was removed is an object with numbers for names: CoCart removes namespaces so. */
export const listIn = (value: unknown): readonly unknown[] | undefined => {
  if (Array.isArray(value)) return value
  const isList = isJsonObject(value) && Object.keys(value).every((name) => /^\d+$/.test(name))
  return isList ? Object.values(value) : undefined
}

const namespacesOf = (document: JsonObject): string[] => {
  const names = (listIn(ownMember(document, 'namespaces')) ?? []).filter(
    (name): name is string => typeof name === 'string' && name.length <= 128,
  )
  return [...new Set(names)]
}

/** Visits the members of the object at `from`; gives the position behind it, or -1 where no object is written. */
function* membersAt(
  text: string,
  from: number,
  visit: (name: string, start: number) => Pieces<number>,
): Pieces<number> {
  if (text.charCodeAt(from) !== openBrace) return -1
  let at = skipSpace(text, from + 1)
  if (text[at] === '}') return at + 1
  for (;;) {
    if (text[at] !== '"') return -1
    const end = stringEnd(text, at)
    const name = parsedJson(text.slice(at, end))
    const behind = skipSpace(text, end)
    if (typeof name !== 'string' || text[behind] !== ':') return -1
    const last = yield* visit(name, skipSpace(text, behind + 1))
    if (last < 0) return -1
    at = skipSpace(text, last)
    if (text[at] === '}') return at + 1
    if (text[at] !== ',') return -1
    at = skipSpace(text, at + 1)
  }
}

/** Reads one index. `refusal` is why a visit has ended it. */
class IndexReader {
  readonly #text: string
  readonly #identity: [string, unknown][] = []
  #routes: Map<string, JsonObject> | undefined
  #lengthOfPiece = 0
  #refusal: IndexRefusal | undefined

  constructor(text: string) {
    this.#text = text
  }

  #refuse(reason: IndexRefusal): number {
    this.#refusal = reason
    return -1
  }

  /** The value at `start`; undefined where it is none. */
  #value(start: number, end: number, depth: number): unknown {
    const text = this.#text.slice(start, end)
    if (text.length > limits.member) this.#refuse('too-large')
    else if (nestingDepth(text) + depth > limits.depth) this.#refuse('too-deep')
    else return parsedJson(text)
    return undefined
  }

  *#member(name: string, start: number): Pieces<number> {
    if (name === 'routes') {
      this.#routes = new Map()
      const end = yield* membersAt(this.#text, start, (pattern, at) => this.#route(pattern, at))
      if (end < 0) this.#refusal ??= this.#text.charCodeAt(start) === openBrace ? 'not-json' : 'not-an-index'
      return end
    }
    const end = valueEnd(this.#text, start)
    const value = this.#value(start, end, 1)
    if (value === undefined) return -1
    this.#identity.push([name, value])
    return end
  }

  *#route(pattern: string, start: number): Pieces<number> {
    const end = valueEnd(this.#text, start)
    const entry = this.#value(start, end, 2)
    if (entry === undefined) return -1
    if (isJsonObject(entry)) this.#routes?.set(pattern, entry)
    this.#lengthOfPiece += end - start
    if (this.#lengthOfPiece > charactersOfPiece) {
      this.#lengthOfPiece = 0
      yield
    }
    return end
  }

  *read(): Pieces<IndexReading> {
    const text = this.#text
    const start = skipSpace(text, 0)
    if (text.charCodeAt(start) !== openBrace) {
      const isJson = this.#value(start, text.length, 0) !== undefined
      return refused(this.#refusal ?? (isJson ? 'not-an-index' : 'not-json'))
    }
    const end = yield* membersAt(text, start, (name, at) => this.#member(name, at))
    if (end < 0 || skipSpace(text, end) !== text.length) return refused(this.#refusal ?? 'not-json')
    if (this.#routes === undefined) return refused('not-an-index')
    const identity = Object.fromEntries(this.#identity)
    return {
      kind: 'index',
      index: { identity, namespaces: namespacesOf(identity), routes: this.#routes },
    }
  }
}

/**
 * Reads a document that comes from outside: never throws, whatever it holds. Route by route: parsed as a whole, the index of ten
 * thousand routes holds the event loop for 80 ms.
 */
export function* readIndexInPieces(content: Buffer): Pieces<IndexReading> {
  if (content.length > limits.octets) return refused('too-large')
  return yield* new IndexReader(content.toString('utf8')).read()
}

/** The same at once. */
export const readIndex = (content: Buffer): IndexReading => atOnce(readIndexInPieces(content))

/** Patterns of routes by their templates: a pattern may differ between versions. */
export const patternsByTemplate = memoizeByObject(
  ({ routes }: IndexDocument): ReadonlyMap<string, string> =>
    new Map(
      [...routes.keys()].map((pattern) => [(routeTemplate(pattern) ?? pattern).toLowerCase(), pattern]),
    ),
)

/** The endpoints that a route's entry announces; undefined where it has no list of them. */
export const endpointsIn = (entry: JsonObject): readonly JsonObject[] | undefined => {
  const endpoints = ownMember(entry, 'endpoints')
  return Array.isArray(endpoints) ? endpoints.filter(isJsonObject) : undefined
}

export const methodsIn = (endpoint: JsonObject): readonly unknown[] => {
  const methods = ownMember(endpoint, 'methods')
  return Array.isArray(methods) ? methods : []
}

export const endpointWith = (entry: JsonObject | undefined, method: string | undefined) =>
  entry && endpointsIn(entry)?.find((endpoint) => methodsIn(endpoint).includes(method))

const firstLink = (entry: JsonObject | undefined): unknown => {
  const links = entry === undefined ? undefined : ownMember(entry, '_links')
  const self = isJsonObject(links) ? ownMember(links, 'self') : undefined
  const link: unknown = Array.isArray(self) ? self[0] : undefined
  return isJsonObject(link) ? ownMember(link, 'href') : undefined
}

/** The root becomes a prefix that is looked for in links, so it must be a plain absolute URL. */
const asRoot = (value: unknown): string | undefined => {
  if (
    typeof value !== 'string' ||
    value.length > limits.rootLength ||
    !/^https?:\/\/[^\s"<>\\?#@]+$/.test(value)
  ) {
    return undefined
  }
  return URL.canParse(value) ? value.replace(/\/$/, '') : undefined
}

/**
 * The address under which the upstream writes its links: that of its own root route, or its home and the path it is asked at.
 * Undefined when neither is usable, e.g. `?rest_route=` addresses of a site without permalinks.
 */
export const rootOf = (index: IndexDocument, basePath: string): string | undefined => {
  const registered = asRoot(firstLink(index.routes.get('/')))
  if (registered !== undefined) return registered
  const home = asRoot(ownMember(index.identity, 'home'))
  return home === undefined ? undefined : asRoot(home + basePath)
}

/** PHP has one kind of array, so WordPress writes `[]` for a map without entries. */
const orEmptyList = (map: JsonObject): JsonObject | readonly [] => (Object.keys(map).length === 0 ? [] : map)

const describeParts = (schema: ArgumentSchema): JsonObject => ({
  ...schema,
  ...mapParts(schema, describeParts, (properties) => orEmptyList(mapSchemas(properties, describeParts))),
})

/** WordPress announces neither for an argument itself, only for its parts, and `required` for each argument. */
const describeArgument = (schema: ArgumentSchema): JsonObject => {
  const { context: _context, readonly: _readonly, ...registered } = schema
  return { ...describeParts(registered), required: schema.required === true }
}

/** An endpoint as WordPress announces it, with the arguments that the gateway enforces. */
export const describeEndpoint = memoizeByObject(
  (endpoint: Endpoint): JsonObject => ({
    methods: endpoint.methods,
    ...(endpoint.allowBatch === undefined ? {} : { allow_batch: { v1: endpoint.allowBatch } }),
    args: orEmptyList(mapSchemas(endpoint.arguments, describeArgument)),
  }),
)

const wordsOf = (schema: JsonObject): string | undefined => {
  const words = ownMember(schema, 'description')
  return typeof words === 'string' ? words : undefined
}

/** The same, described as the upstream describes it, in the language of the site; what it does not announce keeps its words. */
const inWordsOf = (ours: unknown, theirs: unknown): unknown => {
  if (Array.isArray(ours)) {
    return Array.isArray(theirs) ? ours.map((part, at) => inWordsOf(part, theirs[at])) : ours
  }
  if (!isJsonObject(ours) || !isJsonObject(theirs)) return ours
  const words = wordsOf(theirs)
  const parts = Object.entries(ours)
    .filter(([name, part]) => name !== 'description' || typeof part !== 'string')
    .map(([name, part]) => [name, inWordsOf(part, ownMember(theirs, name))])
  return { ...(words === undefined ? {} : { description: words }), ...Object.fromEntries(parts) }
}

/** Arguments that the upstream announces are its own to describe: what it takes counts, in the language of the site. */
const withTheirs = (ours: JsonObject, theirs: JsonObject | undefined): JsonObject => {
  const [args, registered] = [ownMember(ours, 'args'), theirs && ownMember(theirs, 'args')]
  if (!isJsonObject(args) || !isJsonObject(registered)) return ours
  const entries = Object.entries(args).map(([name, argument]) => [
    name,
    ownMember(registered, name) ?? argument,
  ])
  return { ...ours, args: Object.fromEntries(entries) }
}

/** A row's entry in the discovery document, in WordPress's shape. What the gateway answers itself has its own bounds in it. */
export const describeRow = (row: Row, publicRoot: string, theirs: JsonObject | undefined): JsonObject => ({
  namespace: row.namespace,
  methods: [...new Set(row.endpoints.flatMap((endpoint) => endpoint.methods))],
  endpoints: row.endpoints.map((endpoint) => {
    const [ours, registered] = [describeEndpoint(endpoint), endpointWith(theirs, endpoint.methods[0])]
    return row.handledBy === 'upstream' ? withTheirs(ours, registered) : inWordsOf(ours, registered)
  }),
  // A route with parameters has no single URL.
  ...(row.pattern.includes('(?P<') ? {} : { _links: { self: [{ href: publicRoot + row.pattern }] } }),
})
