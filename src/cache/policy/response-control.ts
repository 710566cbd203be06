import {
  cacheControlOf,
  type Directives,
  deltaSeconds,
  parseCacheControl,
  qualifiedHeaders,
  unreadableDirectives,
} from '../../http/headers/caching-headers.ts'
import { type HeaderLines, headerValue, headerValues } from '../../http/headers/header-lines.ts'
import { bareItem, type Member, readDictionary } from '../../http/headers/structured-fields.ts'
import { memoize } from '../../http/memo.ts'

/** Most specific first (RFC 9213 §2.2). */
const targetedHeaders = ['trellis-cache-control', 'cdn-cache-control'] as const

const numeric: ReadonlySet<string> = new Set([
  'max-age',
  's-maxage',
  'stale-while-revalidate',
  'stale-if-error',
])

const maybeQualified: ReadonlySet<string> = new Set(['no-cache', 'private'])
const flags: ReadonlySet<string> = new Set([
  'no-store',
  'public',
  'must-revalidate',
  'proxy-revalidate',
  'must-understand',
  'no-transform',
])

type Argument =
  | { readonly kind: 'keep'; readonly argument: string | undefined }
  | { readonly kind: 'drop' | 'wrong' }

const readArgument = (key: string, member: Member): Argument => {
  if (!numeric.has(key) && !flags.has(key) && !maybeQualified.has(key)) return { kind: 'drop' }
  const item = bareItem(member)
  if (numeric.has(key)) {
    return Number.isInteger(item) ? { kind: 'keep', argument: String(item) } : { kind: 'wrong' }
  }
  if (typeof item === 'boolean') return item ? { kind: 'keep', argument: undefined } : { kind: 'drop' }
  return maybeQualified.has(key) && typeof item === 'string'
    ? { kind: 'keep', argument: item }
    : { kind: 'wrong' }
}

/**
 * undefined when the header is empty: it then counts as absent (RFC 9213 §2.1). One that is no dictionary, or has a value of the wrong
 * type, would count as absent too; here it counts as no-store, because nobody knows what its sender wanted of caches.
 */
const parseTargeted = memoize((value): Directives | undefined => {
  const members = readDictionary(value)
  if (members === undefined) return unreadableDirectives(value)
  if (members.size === 0) return undefined
  const directives = new Map<string, string | undefined>()
  for (const [key, member] of members) {
    const read = readArgument(key, member)
    if (read.kind === 'wrong') return unreadableDirectives(value)
    if (read.kind === 'keep') directives.set(key, read.argument)
  }
  return directives
})

const findTargeted = (headers: HeaderLines): Directives | undefined => {
  for (const name of targetedHeaders) {
    const lines = headerValues(headers, name)
    if (lines.length === 0) continue
    // A string that spans two lines would hide what is between.
    const isWhole = lines.length === 1 || lines.every((line) => readDictionary(line) !== undefined)
    const value = lines.join(', ')
    const directives = isWhole ? parseTargeted(value) : unreadableDirectives(value)
    if (directives !== undefined) return directives
  }
  return undefined
}

/** What older servers and programs write for surrogates and HTTP/1.0 caches counts where it forbids. */
const surrogateForbids = (headers: HeaderLines): boolean =>
  /no-store|private/i.test(headerValue(headers, 'surrogate-control') ?? '')

const pragmaForbids = (headers: HeaderLines): boolean =>
  /no-cache/i.test(headerValue(headers, 'pragma') ?? '')

/** The directives of a response for a shared cache, from Cache-Control or a targeted header. Seconds; `invalid` where there is no valid number. */
const controlBy = (source: 'targeted' | 'cache-control' | 'none', directives: Directives) => {
  const noCacheHeaders = qualifiedHeaders(directives, 'no-cache')
  const privateHeaders = qualifiedHeaders(directives, 'private')
  return {
    /** A targeted header (RFC 9213) replaces Cache-Control and Expires. */
    source,
    noStore: directives.has('no-store'),
    /** Unqualified: the whole response must be validated before each reuse. */
    noCache: directives.has('no-cache') && noCacheHeaders === undefined,
    isPrivate: directives.has('private') && privateHeaders === undefined,
    isPublic: directives.has('public'),
    mustUnderstand: directives.has('must-understand'),
    /** must-revalidate or proxy-revalidate: never served stale. */
    mustRevalidate: directives.has('must-revalidate') || directives.has('proxy-revalidate'),
    /** These permit storing responses to credentials (RFC 9111 §3.5); proxy-revalidate does not. */
    allowsCredentials:
      directives.has('must-revalidate') || directives.has('public') || directives.has('s-maxage'),
    maxAge: deltaSeconds(directives, 'max-age'),
    sMaxAge: deltaSeconds(directives, 's-maxage'),
    staleWhileRevalidate: deltaSeconds(directives, 'stale-while-revalidate'),
    staleIfError: deltaSeconds(directives, 'stale-if-error'),
    /** Headers that no-cache or private name (RFC 9111 §5.2.2.4, §5.2.2.7). */
    notStored: [...(noCacheHeaders ?? []), ...(privateHeaders ?? [])],
    hasQualifiedPrivate: privateHeaders !== undefined,
  }
}

export type ResponseControl = Readonly<ReturnType<typeof controlBy>>

const noControl: ResponseControl = controlBy('none', parseCacheControl(undefined))
const byCacheControl = memoize((value) => controlBy('cache-control', parseCacheControl(value)))

const generalControl = (headers: HeaderLines): ResponseControl => {
  const lines = headerValues(headers, 'cache-control')
  const [only] = lines
  if (only === undefined) return noControl
  return lines.length === 1 ? byCacheControl(only) : controlBy('cache-control', cacheControlOf(headers))
}

const readControl = (headers: HeaderLines): ResponseControl => {
  const targeted = findTargeted(headers)
  if (targeted !== undefined) return controlBy('targeted', targeted)
  const general = generalControl(headers)
  return !general.noStore && surrogateForbids(headers)
    ? { ...general, noStore: true, mustUnderstand: false }
    : general
}

let last: { readonly of: HeaderLines; readonly control: ResponseControl } | undefined

/** Read once for all that ask about a response in a row: whether it is stored, and with which headers and terms. */
export const responseControl = (headers: HeaderLines): ResponseControl => {
  if (last?.of !== headers) last = { of: headers, control: readControl(headers) }
  return last.control
}

/** Pragma has no meaning in a response (RFC 9111 §5.4), but those who write it without Cache-Control want no cache. */
export const forbidsByPragma = (headers: HeaderLines, control: ResponseControl): boolean =>
  control.source === 'none' && pragmaForbids(headers)
