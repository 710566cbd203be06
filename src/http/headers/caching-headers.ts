import { conditionalHeaders } from '../conditional/preconditions.ts'
import { memoize } from '../memo.ts'
import type { GatewayResponse } from '../message.ts'
import { shortText } from '../retained.ts'
import { type HeaderLines, headerValue, headerValues, withoutHeaders } from './header-lines.ts'

/** Directives of a Cache-Control header (RFC 9111 §5.2): lower-case name to argument, undefined without one. */
export type Directives = ReadonlyMap<string, string | undefined>

/** RFC 9111 §1.2.2: an overflowing delta-seconds counts as 2^31. */
const longestSeconds = 2_147_483_648

/** One directive (RFC 9111 §5.2) with the white space around it: token [ "=" ( token / quoted-string ) ]. */
const directive =
  /[ \t]*([!#$%&'*+.^_`|~\dA-Za-z-]+)(?:=(?:([!#$%&'*+.^_`|~\dA-Za-z-]+)|"((?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t \x21-\x7e\x80-\xff])*)"))?[ \t]*(?:,|$)/y

/** RFC 9110 §5.6.1: a recipient accepts empty members. */
const emptyMember = /[ \t]*(?:,|$)/y

type DirectiveMember = {
  readonly name: string
  readonly argument: string | undefined
  readonly isQuoted: boolean
}

/** Undefined where the text has something that is no directive. */
const readMembers = (value: string): readonly DirectiveMember[] | undefined => {
  const members: DirectiveMember[] = []
  let at = 0
  while (at < value.length) {
    directive.lastIndex = at
    const [read, name, token, quoted] = directive.exec(value) ?? []
    if (name !== undefined) {
      const argument = token ?? quoted?.replace(/\\(.)/g, '$1')
      members.push({ name: name.toLowerCase(), argument, isQuoted: quoted !== undefined })
    }
    emptyMember.lastIndex = at
    const end = read ?? emptyMember.exec(value)?.[0]
    if (end === undefined) return undefined
    at += end.length
  }
  return members
}

/**
 * Nobody knows what the sender wanted: `no-store`, and whatever else forbids something and occurs in the text. Other caches look for
 * the words too.
 */
export const unreadableDirectives = (value: string): Directives =>
  new Map(
    ['no-store', ...['private', 'no-transform'].filter((word) => value.toLowerCase().includes(word))].map(
      (name) => [name, undefined],
    ),
  )

/** For no-cache and private, which may name headers: without an argument they mean the whole response, and that wins. */
const mergeQualified = (first: string | undefined, second: string | undefined): string | undefined =>
  first === undefined || second === undefined ? undefined : `${first},${second}`

const isQualifiable = (name: string): boolean => name === 'no-cache' || name === 'private'

const readDirectives = memoize((value): Directives => {
  const members = readMembers(value)
  if (members === undefined) return unreadableDirectives(value)
  const directives = new Map<string, string | undefined>()
  for (const { name, argument: written, isQuoted } of members) {
    // Names of headers are quoted (RFC 9111 §5.2.2.4, §5.2.2.7): `private=true` means the whole response.
    const argument = isQualifiable(name) && !isQuoted ? undefined : written
    if (!directives.has(name)) directives.set(name, argument)
    else if (isQualifiable(name)) directives.set(name, mergeQualified(directives.get(name), argument))
  }
  return directives
})

const noDirectives: Directives = new Map()

/**
 * The directives of a Cache-Control; a repeated one keeps its first argument (RFC 9111 §4.2.1). A value that is not in the grammar
 * counts as no-store.
 */
export const parseCacheControl = (value: string | undefined): Directives =>
  value === undefined ? noDirectives : readDirectives(value)

/** The same of the lines of a response. Each must be readable alone: a quoted-string that spans two of them hides what is between. */
export const cacheControlOf = (headers: HeaderLines): Directives => {
  const lines = headerValues(headers, 'cache-control')
  if (lines.length < 2) return parseCacheControl(lines[0])
  const value = lines.join(', ')
  return lines.every((line) => readMembers(line) !== undefined)
    ? readDirectives(value)
    : unreadableDirectives(value)
}

/** Argument in seconds: undefined when the directive is absent, `invalid` when it is not a non-negative integer. */
export const deltaSeconds = (directives: Directives, name: string): number | 'invalid' | undefined => {
  if (!directives.has(name)) return undefined
  return nonNegativeInteger(directives.get(name)) ?? 'invalid'
}

/** A delta-seconds value (RFC 9111 §1.2.2), or undefined. */
export const nonNegativeInteger = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d+$/.test(text) ? Math.min(Number(text), longestSeconds) : undefined

const headerName = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/

/**
 * Header names that qualify no-cache or private, lower case; undefined when the directive is absent or unqualified. An argument that is
 * no list of header names means the whole response, as the stricter reading.
 */
export const qualifiedHeaders = (directives: Directives, name: string): readonly string[] | undefined => {
  const argument = directives.get(name)
  if (argument === undefined) return undefined
  const names = argument.split(',').map((part) => part.trim().toLowerCase())
  const named = names.filter((part) => part !== '')
  return named.length === 0 || !named.every((part) => headerName.test(part)) ? undefined : named
}

/** The headers that Vary names (RFC 9110 §12.5.5): lower-case header names in order, or `any`: nothing that a later request could match, or too many names. */
type Vary = { readonly kind: 'fields'; readonly names: readonly string[] } | { readonly kind: 'any' }

/**
 * Headers whose value differs with each request or belongs to one request: its id, trace, deadline, framing, range and the validators
 * of the cache. A response selected by them is for one request only.
 */
const ofOneRequest: ReadonlySet<string> = new Set([
  'x-request-id',
  'x-request-deadline-ms',
  'traceparent',
  'tracestate',
  'content-length',
  'transfer-encoding',
  ...conditionalHeaders,
])

/** Not `*`, and no name that is never sent (forwardable-headers.ts): an upstream that writes `Accept_Language` reads another header. */
const readable = /^[a-z\d-]*$/

/** Each hit compares the values of all of them, for each variant whose list differs. */
const maxMembers = 64

const nothing: Vary = { kind: 'fields', names: [] }

const readNames = memoize((value): Vary => {
  const names = value.split(',', maxMembers + 1).map((name) => name.trim().toLowerCase())
  if (names.length > maxMembers || names.some((name) => !readable.test(name) || ofOneRequest.has(name)))
    return { kind: 'any' }
  return { kind: 'fields', names: [...new Set(names.filter((name) => name !== ''))].sort() }
})

/** Reads all Vary lines; a `*` among other members counts (RFC 9110 §12.5.5), names are sorted and unique. */
export const parseVary = (headers: HeaderLines): Vary => {
  const value = headerValue(headers, 'vary')
  return value === undefined ? nothing : readNames(value)
}

export const variesBy = (headers: HeaderLines, name: string): boolean => {
  const vary = parseVary(headers)
  return vary.kind === 'fields' && vary.names.includes(name)
}

/** The headers by which the upstream can have selected a response: as the gateway sent them, not as the client did. */
export type SelectingHeaders = {
  /** The value with which a header is sent to the upstream (lower-case name); undefined when it is not sent. */
  sentHeader(name: string): string | undefined
}

/**
 * The secondary key of a request under the given header names. Values count as they are sent: upstreams do read their order,
 * case and spaces. Injective: lengths go before values, and a missing header differs from an empty one. A long key is kept as a
 * digest, because clients choose how long the values are.
 */
export const varyKey = (names: readonly string[], selecting: SelectingHeaders): string => {
  let key = ''
  for (const name of names) {
    const value = selecting.sentHeader(name)
    key += value === undefined ? '-;' : `${value.length}:${value};`
  }
  return shortText(key)
}

/** Response headers for caches in front of the gateway. Where it fills these itself, those of the upstream do not pass. */
export const downstreamHeaders: ReadonlySet<string> = new Set([
  'akamai-cache-control',
  'cache-groups',
  'cache-tag',
  'cdn-cache-control',
  'cloudflare-cdn-cache-control',
  'edge-cache-tag',
  'edge-control',
  'netlify-cache-tag',
  'netlify-cdn-cache-control',
  'surrogate-control',
  'surrogate-key',
  'vercel-cache-tag',
  'vercel-cdn-cache-control',
  'x-accel-expires',
  'xkey',
])

/** Lifetime for receivers (RFC 9213); Surrogate-Control for those that know only that (Edge Architecture). */
export const downstreamCacheControl = (directive: string): HeaderLines => [
  ...['CDN-Cache-Control', directive],
  ...['Surrogate-Control', directive],
]

const forbidden = downstreamCacheControl('no-store')

/** The response with nothing for receivers in it. */
export const withoutDownstreamHeaders = ({ status, headers, content }: GatewayResponse): GatewayResponse => ({
  status,
  headers: withoutHeaders(headers, downstreamHeaders),
  content,
})

/** The response, which no receiver may store. */
export const notForDownstream = ({ status, headers, content }: GatewayResponse): GatewayResponse => ({
  status,
  headers: [...withoutHeaders(headers, downstreamHeaders), ...forbidden],
  content,
})
