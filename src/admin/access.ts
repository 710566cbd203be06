import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { isProxyHeader } from '../http/headers/forwardable-headers.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import type { AdminRefusal } from './events.ts'

/** The facts that decide whether a request to the admin side is answered. */
export type AdminRequest = {
  readonly writes: boolean
  /** Is the path one that programs without a token read? */
  readonly isOpen: boolean
  /** Address of the connection's peer; headers do not count. */
  readonly peer: string
  readonly headers: RequestHeaders
}

export type AdminAccess =
  | { readonly kind: 'granted' }
  | { readonly kind: 'refused'; readonly reason: AdminRefusal }

const granted: AdminAccess = { kind: 'granted' }
const refused = (reason: AdminRefusal): AdminAccess => ({ kind: 'refused', reason })

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares in constant time; the time does not depend on the length of the token either. */
const createTokenCheck = (token: string): ((given: string) => boolean) => {
  const expected = digest(token)
  return (candidate) => timingSafeEqual(digest(candidate), expected)
}

const isLoopback = (address: string): boolean =>
  address === '::1' || /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/i.test(address)

/** Name of the Host header without port and brackets. */
const hostOf = (headers: RequestHeaders): string =>
  (requestHeader(headers, 'host') ?? '').replace(/:\d{1,5}$/, '').replace(/^\[(.*)\]$/, '$1')

/** The owner of a name can point it here (DNS rebinding); an address cannot be redirected. */
const isHostItself = (headers: RequestHeaders): boolean => {
  const host = hostOf(headers)
  return host.toLowerCase() === 'localhost' || isIP(host) !== 0
}

/** A page of another origin made the browser send this, or a link of it was followed. Programs send neither header. */
const isCrossSite = (headers: RequestHeaders): boolean => {
  const site = requestHeader(headers, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true
  const origin = requestHeader(headers, 'origin')
  if (origin === undefined) return false
  return !URL.canParse(origin) || new URL(origin).host !== requestHeader(headers, 'host')
}

/** A request that a proxy on this host forwarded does not come from this host. */
const isForwarded = (headers: RequestHeaders): boolean => Object.keys(headers).some(isProxyHeader)

/** A link may lead to the page; other pages cannot read it. */
const isNavigation = (headers: RequestHeaders): boolean => headers['sec-fetch-mode'] === 'navigate'

/** A browser sends one of these with each request, also after DNS rebinding; Prometheus sends none. */
const isBrowser = (headers: RequestHeaders): boolean =>
  ['accept-language', 'origin', 'referer', 'cookie', 'sec-fetch-site', 'sec-fetch-mode'].some(
    (name) => headers[name] !== undefined,
  )

const isJson = (headers: RequestHeaders): boolean =>
  /^application\/json[\t ]*(?:;|$)/i.test(requestHeader(headers, 'content-type') ?? '')

/** A request that has no content has no type of content either (RFC 9110 §8.3). */
export const isWithoutContent = (headers: RequestHeaders): boolean =>
  headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0'

/** JSON is what no page of another origin can send unasked: without content, a program or Origin stands for it, which was checked. */
const isJsonOrNothing = (headers: RequestHeaders): boolean =>
  isJson(headers) || (isWithoutContent(headers) && (!isBrowser(headers) || headers['origin'] !== undefined))

type Credential = { readonly scheme: 'bearer' | 'basic'; readonly secret: string }

/** With Basic a browser prompts for the token: any name, and the token as password. */
const credentialOf = (headers: RequestHeaders): Credential | undefined => {
  const [, scheme = '', text = ''] =
    /^(bearer|basic) +([^\s]{1,4096})$/i.exec(requestHeader(headers, 'authorization') ?? '') ?? []
  if (scheme.toLowerCase() === 'bearer') return { scheme: 'bearer', secret: text }
  if (scheme === '') return undefined
  const pair = Buffer.from(text, 'base64').toString()
  return { scheme: 'basic', secret: pair.slice(pair.indexOf(':') + 1) }
}

const byToken = (request: AdminRequest, isToken: (given: string) => boolean): AdminAccess => {
  const credential = credentialOf(request.headers)
  // A page can make a browser send its password: not enough for a write.
  if (credential === undefined || (request.writes && credential.scheme === 'basic')) {
    return refused('credential-missing')
  }
  return isToken(credential.secret) ? granted : refused('credential-wrong')
}

const byPlace = ({ writes, peer, headers }: AdminRequest): AdminAccess => {
  if (!isHostItself(headers)) return refused('host-by-name')
  return writes && (!isLoopback(peer) || isForwarded(headers)) ? refused('not-loopback') : granted
}

/**
 * Decides who may read and who may write. With a token: clients that send it. Without one: every client that reaches the port may
 * read, and only this host may write. In both cases no page of another site can make a browser read or write anything.
 * Open paths accept any Host from programs, since Prometheus sends the name of its target, and an address from browsers.
 */
export const createAccess = (token: string): ((request: AdminRequest) => AdminAccess) => {
  const isToken = token === '' ? undefined : createTokenCheck(token)
  return (request) => {
    const { writes, isOpen, headers } = request
    if (isCrossSite(headers) && (writes || !isNavigation(headers))) return refused('cross-site')
    if (isOpen && !writes && (isHostItself(headers) || !isBrowser(headers))) return granted
    const access = isToken === undefined ? byPlace(request) : byToken(request, isToken)
    if (access.kind === 'refused') return access
    return writes && !isJsonOrNothing(headers) ? refused('not-json') : granted
  }
}
