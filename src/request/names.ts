import { type ArgumentSchema, type Arguments, type Endpoint, mapParts, type Row } from '../contracts/row.ts'
import { essence, type FieldLines, fieldValue } from '../http/message.ts'
import { type ContentMapper, mapWhole } from './content-mapper.ts'
import { createNameSwap, type NameSwap, type NameTable, noSwap } from './name-swap.ts'
import { createIsUnmapped, createJsonRules } from './names/json-rules.ts'
import { createJsonScanner, type StringRules } from './names/json-scanner.ts'
import { createRootMapper } from './names/root-mapper.ts'
import { createRestUrls, mapFields, mapPath, mapQuery, type RestUrls } from './names/urls.ts'

export type NamesOptions = {
  /** `wordpress`: names are swapped and REST URLs translated; `same`: only REST URLs. */
  readonly mode: 'wordpress' | 'same'
  readonly table: NameTable
  /** Absolute URL of the REST root as clients see it. */
  readonly publicRoot: string
  /** Absolute URLs of the REST root as the upstream writes it, the learned one first; called for each content. */
  readonly upstreamRoots: () => readonly string[]
}

const withoutSlash = (url: string): string => (url.endsWith('/') ? url.slice(0, -1) : url)

const otherScheme = (url: string): string =>
  url.startsWith('https:') ? `http:${url.slice(6)}` : url.replace(/^http:/, 'https:')

/** WordPress writes the scheme that it assumes for the request at hand, so either may occur. */
const withBothSchemes = (roots: readonly string[], publicRoot: string): string[] => [
  ...new Set(
    roots.map(withoutSlash).flatMap((root) => (root === publicRoot ? [root] : [root, otherScheme(root)])),
  ),
]

const isJson = (type: string): boolean => type === 'application/json' || type.endsWith('+json')

/** A `_jsonp` response is JSON in a call, `application/json+oembed` an old spelling. */
const carriesNames = (lines: FieldLines): boolean => {
  const coding = fieldValue(lines, 'content-encoding') ?? 'identity'
  // Coded or partial content cannot be read (RFC 9110 §8.4, §14.4).
  if (coding.toLowerCase() !== 'identity' || fieldValue(lines, 'content-range') !== undefined) return false
  const type = essence(fieldValue(lines, 'content-type'))
  return isJson(type) || type === 'application/json+oembed' || type === 'application/javascript'
}

type Direction = {
  readonly urls: RestUrls
  readonly rules: StringRules
  /** Maps a complete content without the scanner; undefined where that is not possible. */
  readonly whole: (content: Buffer) => Buffer | undefined
}

/** Builds the scanner on first use: most contents are complete and do not need it. */
const jsonMapper = ({ rules, whole }: Direction): ContentMapper => {
  let built: ContentMapper | undefined
  const scanner = (): ContentMapper => {
    built ??= createJsonScanner(rules)
    return built
  }
  return { push: (chunk) => scanner().push(chunk), end: () => scanner().end(), whole }
}

const mapJson = (content: Buffer, direction: Direction): Buffer =>
  direction.urls.isIdentity ? content : mapWhole(jsonMapper(direction), content)

const mapSchema = (schema: ArgumentSchema, swap: NameSwap): ArgumentSchema => ({
  ...schema,
  ...mapParts(
    schema,
    (part) => mapSchema(part, swap),
    (properties) => mapArguments(properties, swap),
  ),
})

const mapArguments = (args: Arguments, swap: NameSwap): Arguments =>
  Object.fromEntries(
    Object.entries(args).map(([name, schema]) => [swap.keys.get(name) ?? name, mapSchema(schema, swap)]),
  )

/** The `namespace` argument of an index defaults to that index's own namespace. */
const mapNamespaceDefault = (args: Arguments, swap: NameSwap): Arguments => {
  const schema = args['namespace']
  const other = typeof schema?.default === 'string' ? swap.namespaces.get(schema.default) : undefined
  return schema === undefined || other === undefined
    ? args
    : { ...args, namespace: { ...schema, default: other } }
}

const mapEndpoint = (endpoint: Endpoint, swap: NameSwap): Endpoint => ({
  ...endpoint,
  arguments: mapNamespaceDefault(mapArguments(endpoint.arguments, swap), swap),
})

/** The rows in the other spelling. Ids and collections stay, so that tags and metric labels are the same in both. */
export const mapRows = (rows: readonly Row[], swap: NameSwap): Row[] =>
  rows.map((row) => ({
    ...row,
    template: mapPath(row.template, swap),
    pattern: mapPath(row.pattern, swap),
    namespace: swap.namespaces.get(row.namespace) ?? row.namespace,
    endpoints: row.endpoints.map((endpoint) => mapEndpoint(endpoint, swap)),
  }))

/** Translates between the names and URLs of the public side and the upstream's. Throws when the name table is ambiguous. */
export const createNames = (options: NamesOptions) => {
  const table = createNameSwap(options.table)
  const swap = options.mode === 'wordpress' ? table : noSwap
  const publicRoot = withoutSlash(options.publicRoot)

  const directionBetween = (from: readonly string[], to: string): Direction => {
    const urls = createRestUrls(from, to, swap)
    const isUnmapped = createIsUnmapped(swap, urls)
    const whole =
      swap === noSwap
        ? createRootMapper(from, to)
        : (content: Buffer) => (isUnmapped(content) ? content : undefined)
    return { urls, rules: createJsonRules(swap, urls), whole }
  }
  // Rebuilt only when a root has been learned.
  let builtFor: readonly string[] = []
  let toPublic = directionBetween([], publicRoot)
  let toUpstream = directionBetween([], publicRoot)
  const rebuildForNewRoots = (): void => {
    const roots = options.upstreamRoots()
    if (roots.length === builtFor.length && roots.every((root, i) => root === builtFor[i])) return
    builtFor = [...roots]
    toPublic = directionBetween(withBothSchemes(roots, publicRoot), publicRoot)
    toUpstream = directionBetween([publicRoot], withoutSlash(roots[0] ?? publicRoot))
  }
  const currentToPublic = (): Direction => {
    rebuildForNewRoots()
    return toPublic
  }

  return {
    /** Path and query relative to the mount → target relative to the upstream's REST root. `query` has no `?`. */
    toUpstreamTarget: (path: string, query: string): string => {
      const mapped = mapPath(path, swap)
      return query === '' ? mapped : `${mapped}?${mapQuery(query, swap)}`
    },
    /** Content of a request; the same buffer when nothing in it changes or its media type carries no names. */
    toUpstreamContent: (content: Buffer, contentType: string | undefined): Buffer => {
      const type = essence(contentType)
      if (isJson(type)) {
        rebuildForNewRoots()
        return mapJson(content, toUpstream)
      }
      if (type !== 'application/x-www-form-urlencoded') return content
      return Buffer.from(mapQuery(content.toString('latin1'), swap), 'latin1')
    },
    /** Fields of a response. Where its content will be mapped, the fields that describe its octets are removed. */
    fromUpstreamFields: (lines: FieldLines): FieldLines => {
      const { urls } = currentToPublic()
      return urls.isIdentity ? lines : mapFields(lines, urls, carriesNames(lines))
    },
    /** Mapper for the content of a response with these upstream fields; undefined when such content is not mapped. */
    fromUpstreamContent: (lines: FieldLines): ContentMapper | undefined => {
      const direction = currentToPublic()
      return direction.urls.isIdentity || !carriesNames(lines) ? undefined : jsonMapper(direction)
    },
    /** Maps a complete JSON document of the upstream, e.g. its index. */
    fromUpstreamDocument: (content: Buffer): Buffer => mapJson(content, currentToPublic()),
    /** The contract's rows in WordPress's spelling, whatever the mode. */
    rowsInUpstreamNames: (rows: readonly Row[]): readonly Row[] => mapRows(rows, table),
  }
}

export type Names = ReturnType<typeof createNames>
