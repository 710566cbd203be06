import { Transform } from 'node:stream'
import { inTurns, type Pieces } from '../../http/bodies/turns.ts'
import { type HeaderLines, headerValue } from '../../http/headers/header-lines.ts'
import { mapLinkValue, maxUrlLength } from '../../http/headers/links.ts'
import { essence } from '../../http/headers/media-type.ts'
import { backslash, mediaTypeOf } from '../../http/json-text.ts'
import { contentText } from '../../http/response-text.ts'
import { type ArgumentSchema, type Arguments, type Endpoint, mapParts, type Row } from '../../service/row.ts'
import {
  type ChunkMapper,
  createJsonScanner,
  type StringRules,
  type ValueKind,
  valueKinds,
} from './json-scanner.ts'
import type { NameTable } from './name-table.ts'
import {
  createNameSwap,
  createRestUrls,
  mapFields,
  mapPath,
  mapQuery,
  type NameSwap,
  noSwap,
  type RestUrls,
} from './urls.ts'

const bytesOfPiece = 64 * 1024

/** Maps complete content, of which a client or an upstream decides how much it is. */
function* mapInPieces(content: Buffer, { push, end }: ChunkMapper): Pieces<Buffer> {
  const mapped: Buffer[] = []
  for (let at = 0; at < content.length; at += bytesOfPiece) {
    mapped.push(push(content.subarray(at, at + bytesOfPiece)))
    yield
  }
  mapped.push(end())
  return Buffer.concat(mapped)
}

/** Maps content as it streams. */
const createContentTransform = (scanner: ChunkMapper): Transform =>
  new Transform({
    transform: (chunk: Buffer, _encoding, done) => done(null, scanner.push(chunk)),
    flush: (done) => done(null, scanner.end()),
  })

/** Route patterns in a discovery document; the longest that WordPress 6.9 has is 108 characters. */
const maxPatternLength = 2048

/** A character of a key may be written in six: `\u005f`. */
const escapedLength = 6

type KeyRule = { readonly text: string | undefined; readonly opens: ValueKind }

/** Keys whose values are names, in discovery documents, types and taxonomies. */
const namingKeys: Readonly<Record<string, ValueKind>> = {
  routes: valueKinds.routes,
  namespaces: valueKinds.namespace,
  namespace: valueKinds.namespace,
  rest_namespace: valueKinds.namespace,
  rest_base: valueKinds.segment,
  Link: valueKinds.link,
}

/** `"namespace": { "default": "wp/v2" }`: the argument of a namespace index. */
const argumentDefault = 'default'

const keyRules = (swap: NameSwap): ReadonlyMap<string, KeyRule> => {
  const rules = new Map<string, KeyRule>()
  for (const [name, opens] of Object.entries(namingKeys)) rules.set(name, { text: undefined, opens })
  rules.set(argumentDefault, { text: undefined, opens: valueKinds.plain })
  for (const [name, text] of swap.keys) rules.set(name, { text, opens: valueKinds.plain })
  return rules
}

const unescaped = (text: string): string => {
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    return text
  }
}

/** Applies `map` to text whose slashes may be escaped, and keeps their form. */
const withSlashes = (text: string, map: (plain: string) => string | undefined): string | undefined => {
  const escaped = text.includes('\\/')
  const plain = escaped ? text.replaceAll('\\/', '/') : text
  const mapped = map(plain)
  if (mapped === undefined || mapped === plain) return undefined
  return escaped ? mapped.replaceAll('/', '\\/') : mapped
}

const hasBackslash = (content: Buffer, start: number, end: number): boolean => {
  for (let i = start; i < end; i++) if (content[i] === backslash) return true
  return false
}

/** In JSON a quote is escaped: `<…>; rel=\"next\"`. */
const mapLinkText = (plain: string, urls: RestUrls): string =>
  mapLinkValue(plain.replaceAll('\\"', '"'), urls.map).replaceAll('"', '\\"')

const quotedForPattern = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')

/**
 * Has a complete content neither a key of the rules nor one of the URLs? Then nothing in it is mapped, and it is not scanned octet by
 * octet. A backslash may hide a key or a URL.
 */
const createIsUnmapped = (swap: NameSwap, urls: RestUrls): ((content: Buffer) => boolean) => {
  const keys = [...Object.keys(namingKeys), ...swap.keys.keys()].map((key) => `"${key}"`)
  const pattern = new RegExp(['\\', ...keys, ...urls.roots].map(quotedForPattern).join('|'))
  return (content) => !pattern.test(contentText(content).latin1)
}

/** The rules for one direction: names are swapped, URLs are translated by `urls`. */
const createJsonRules = (swap: NameSwap, urls: RestUrls): StringRules => {
  const keys = keyRules(swap)
  const longest = Math.max(...[...keys.keys()].map((key) => key.length))
  // Length and first octet rule out most keys before a string is made of them.
  const hints = new Uint8Array((longest + 1) * 256)
  for (const key of keys.keys()) hints[key.length * 256 + key.charCodeAt(0)] = 1
  const prefixes = urls.roots.flatMap((root) => [root, root.replaceAll('/', '\\/')])
  const firstOctets = new Uint8Array(256)
  for (const prefix of prefixes) firstOctets[prefix.charCodeAt(0)] = 1
  const mapUrl = (text: string): string | undefined => withSlashes(text, urls.map)
  const mapNamed: Record<ValueKind, (text: string) => string | undefined> = {
    [valueKinds.plain]: mapUrl,
    [valueKinds.routes]: mapUrl,
    [valueKinds.namespace]: (text) =>
      withSlashes(text, (plain) => swap.namespaces.get(plain)) ?? mapUrl(text),
    [valueKinds.segment]: (text) => swap.segments.get(text) ?? mapUrl(text),
    [valueKinds.link]: (text) => withSlashes(text, (plain) => mapLinkText(plain, urls)) ?? mapUrl(text),
  }

  const plainKey = (content: Buffer, start: number, end: number, kind: ValueKind): KeyRule | undefined => {
    const hasEscape = hasBackslash(content, start, end)
    if (!hasEscape && hints[(end - start) * 256 + (content[start] ?? 0)] !== 1) return undefined
    const text = content.toString('latin1', start, end)
    const name = hasEscape ? unescaped(text) : text
    if (name === argumentDefault && kind === valueKinds.namespace)
      return { text: undefined, opens: valueKinds.namespace }
    return keys.get(name)
  }

  return {
    maxKeyLength: (kind) => (kind === valueKinds.routes ? maxPatternLength : longest * escapedLength),
    maxValueLength: maxUrlLength,
    mayMapValue: (first, kind) =>
      kind !== valueKinds.plain || first === undefined || firstOctets[first] === 1,
    key: (content, start, end, kind) => {
      if (kind !== valueKinds.routes) return plainKey(content, start, end, kind)
      const text = withSlashes(content.toString('latin1', start, end), (plain) => mapPath(plain, swap))
      return { text, opens: valueKinds.plain }
    },
    value: (content, start, end, kind) => {
      const text = content.toString('latin1', start, end)
      const isUrl = prefixes.some((prefix) => text.startsWith(prefix))
      return kind === valueKinds.plain && !isUrl ? undefined : mapNamed[kind](text)
    },
  }
}

export type NamesOptions = {
  /** `wordpress`: names are swapped and REST URLs translated; `same`: only REST URLs. */
  readonly mode: 'wordpress' | 'same'
  readonly table: NameTable
  /** Absolute URL of the REST root as clients see it. */
  readonly publicRoot: string
  /** The REST root that the upstream writes its links with; undefined until learned. */
  readonly learned: { readonly root: string | undefined }
  /** Absolute URLs of the REST root as the upstream may write it, the learned one first. */
  readonly upstreamRoots: (learned: string | undefined) => readonly string[]
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
const carriesNames = (lines: HeaderLines): boolean => {
  const coding = headerValue(lines, 'content-encoding') ?? 'identity'
  // Coded or partial content cannot be read (RFC 9110 §8.4, §14.4).
  if (coding.toLowerCase() !== 'identity' || headerValue(lines, 'content-range') !== undefined) return false
  const type = essence(headerValue(lines, 'content-type'))
  return isJson(type) || type === 'application/json+oembed' || type === 'application/javascript'
}

const createContentMapper = (swap: NameSwap, urls: RestUrls) => {
  const rules = createJsonRules(swap, urls)
  const isUnmapped = createIsUnmapped(swap, urls)
  const scanner = (): ChunkMapper => createJsonScanner(rules)
  return {
    scanner,
    transform: () => createContentTransform(scanner()),
    whole: (content: Buffer): Buffer => {
      if (urls.isIdentity || isUnmapped(content)) return content
      const { push, end } = scanner()
      const mapped = push(content)
      const rest = end()
      return rest.length === 0 ? mapped : Buffer.concat([mapped, rest])
    },
  }
}

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
  const publicNamespace =
    typeof schema?.default === 'string' ? swap.namespaces.get(schema.default) : undefined
  return schema === undefined || publicNamespace === undefined
    ? args
    : { ...args, namespace: { ...schema, default: publicNamespace } }
}

const mapEndpoint = (endpoint: Endpoint, swap: NameSwap): Endpoint => ({
  ...endpoint,
  arguments: mapNamespaceDefault(mapArguments(endpoint.arguments, swap), swap),
})

/** The rows in the other spelling. Ids and collections stay, so that tags and metric labels are the same in both. */
export const rowsInOtherNames = (rows: readonly Row[], table: NameTable): Row[] => {
  const swap = createNameSwap(table)
  return rows.map((row) => ({
    ...row,
    template: mapPath(row.template, swap),
    pattern: mapPath(row.pattern, swap),
    namespace: swap.namespaces.get(row.namespace) ?? row.namespace,
    endpoints: row.endpoints.map((endpoint) => mapEndpoint(endpoint, swap)),
  }))
}

/** Translates between the names and URLs of the public side and the upstream's. Throws when the name table is ambiguous. */
export const createNames = (options: NamesOptions) => {
  const swap = options.mode === 'wordpress' ? createNameSwap(options.table) : noSwap
  const publicRoot = withoutSlash(options.publicRoot)

  const directionBetween = (from: readonly string[], to: string) => {
    const urls = createRestUrls(from, to, swap)
    return { urls, mapper: createContentMapper(swap, urls) }
  }
  const directionsFor = (learned: string | undefined) => {
    const roots = options.upstreamRoots(learned)
    return {
      learned,
      toPublic: directionBetween(withBothSchemes(roots, publicRoot), publicRoot),
      toUpstream: directionBetween([publicRoot], withoutSlash(roots[0] ?? publicRoot)),
    }
  }
  let directions = directionsFor(options.learned.root)
  const current = () => {
    const { root } = options.learned
    if (root !== directions.learned) directions = directionsFor(root)
    return directions
  }

  return {
    /** Path and query relative to the mount → target relative to the upstream's REST root. `query` has no `?`. */
    toUpstreamTarget: (path: string, query: string): string => {
      const mapped = mapPath(path, swap)
      return query === '' ? mapped : `${mapped}?${mapQuery(query, swap)}`
    },
    /** Content of a request; the same buffer when nothing in it changes or its media type carries no names. */
    toUpstreamContent: (content: Buffer, contentType: string | undefined): Buffer | Promise<Buffer> => {
      if (isJson(essence(contentType))) {
        const { urls, mapper } = current().toUpstream
        if (urls.isIdentity || content.length <= bytesOfPiece) return mapper.whole(content)
        return inTurns(mapInPieces(content, mapper.scanner()), '')
      }
      // Of what is not read as a form the validator has not bounded the names.
      if (mediaTypeOf(contentType) !== 'form') return content
      return Buffer.from(mapQuery(content.toString('latin1'), swap), 'latin1')
    },
    /**
     * For a response with these upstream fields: its public ones, and the mapper for its content, undefined when such content is not
     * mapped. Where it is, the fields that describe its octets are removed.
     */
    fromUpstream: (lines: HeaderLines) => {
      const { urls, mapper } = current().toPublic
      if (urls.isIdentity) return { headers: lines, mapper: undefined }
      const isMapped = carriesNames(lines)
      return { headers: mapFields(lines, urls, isMapped), mapper: isMapped ? mapper : undefined }
    },
    /** Maps a complete JSON document of the upstream, e.g. its index. */
    fromUpstreamDocument: (content: Buffer): Buffer => current().toPublic.mapper.whole(content),
    /** The same in pieces. */
    fromUpstreamDocumentInPieces: (content: Buffer): Pieces<Buffer> =>
      mapInPieces(content, current().toPublic.mapper.scanner()),
  }
}

export type Names = ReturnType<typeof createNames>
