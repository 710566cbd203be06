import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { type RequestFields, requestField } from '../http/fields.ts'
import { isProxyField } from '../http/forwardable-fields.ts'
import type { AccessRefusal } from './events.ts'

/** What decides whether a request to the admin side is answered. */
export type AdminRequest = {
  readonly writes: boolean
  /** Is it for what machines read that carry no token? */
  readonly isOpen: boolean
  /** Address of the peer of the connection, not of what a field says. */
  readonly peer: string
  readonly fields: RequestFields
}

export type Access =
  | { readonly kind: 'granted' }
  | { readonly kind: 'refused'; readonly reason: AccessRefusal }

const granted: Access = { kind: 'granted' }
const refused = (reason: AccessRefusal): Access => ({ kind: 'refused', reason })

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** In a time that tells nothing of the token, not even its length. */
const createTokenCheck = (token: string): ((given: string) => boolean) => {
  const expected = digest(token)
  return (given) => timingSafeEqual(digest(given), expected)
}

const isLoopback = (address: string): boolean =>
  address === '::1' || /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/i.test(address)

/** Name of the Host field without its port; brackets gone. */
const hostOf = (fields: RequestFields): string =>
  (requestField(fields, 'host') ?? '').replace(/:\d{1,5}$/, '').replace(/^\[(.*)\]$/, '$1')

/** A name could be made to point here by whoever owns it (DNS rebinding); an address cannot. */
const isHostItself = (fields: RequestFields): boolean => {
  const host = hostOf(fields)
  return host.toLowerCase() === 'localhost' || isIP(host) !== 0
}

/** A page of another origin made the browser send this, or somebody followed a link of it. Programs send neither field. */
const isCrossSite = (fields: RequestFields): boolean => {
  const site = requestField(fields, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true
  const origin = requestField(fields, 'origin')
  if (origin === undefined) return false
  return !URL.canParse(origin) || new URL(origin).host !== requestField(fields, 'host')
}

/** What a proxy on this host passes on is not the operator at this host. */
const isForwarded = (fields: RequestFields): boolean => Object.keys(fields).some(isProxyField)

/** A person follows a link to see the page; no other page gets to read it. */
const isNavigation = (fields: RequestFields): boolean => fields['sec-fetch-mode'] === 'navigate'

/** A browser sends one of these with each request, also where a page made its name lead here; Prometheus sends none. */
const isBrowser = (fields: RequestFields): boolean =>
  ['accept-language', 'origin', 'referer', 'cookie', 'sec-fetch-site', 'sec-fetch-mode'].some(
    (name) => fields[name] !== undefined,
  )

const isJson = (fields: RequestFields): boolean =>
  /^application\/json[\t ]*(?:;|$)/i.test(requestField(fields, 'content-type') ?? '')

type Credential = { readonly scheme: 'bearer' | 'basic'; readonly secret: string }

/** Basic is what a browser can be asked for: any name, and the token as password. */
const credentialOf = (fields: RequestFields): Credential | undefined => {
  const [, scheme = '', text = ''] =
    /^(bearer|basic) +([^\s]{1,4096})$/i.exec(requestField(fields, 'authorization') ?? '') ?? []
  if (scheme.toLowerCase() === 'bearer') return { scheme: 'bearer', secret: text }
  if (scheme === '') return undefined
  const pair = Buffer.from(text, 'base64').toString()
  return { scheme: 'basic', secret: pair.slice(pair.indexOf(':') + 1) }
}

const byToken = (request: AdminRequest, isToken: (given: string) => boolean): Access => {
  const credential = credentialOf(request.fields)
  // A browser sends a password along wherever a page tells it to: not enough for a write.
  if (credential === undefined || (request.writes && credential.scheme === 'basic')) {
    return refused('credential-missing')
  }
  return isToken(credential.secret) ? granted : refused('credential-wrong')
}

const byPlace = ({ writes, peer, fields }: AdminRequest): Access => {
  if (!isHostItself(fields)) return refused('host-by-name')
  return writes && (!isLoopback(peer) || isForwarded(fields)) ? refused('not-loopback') : granted
}

/**
 * Who may see and who may change. With a token: who shows it. Without one: everybody who reaches the port may see, and
 * changes come from this host. No page of another site may make a browser change or read anything, in either case.
 * What is open is for programs by any name, since Prometheus asks for the name of its target, and for browsers by address.
 */
export const createAccess = (token: string): ((request: AdminRequest) => Access) => {
  const isToken = token === '' ? undefined : createTokenCheck(token)
  return (request) => {
    const { writes, isOpen, fields } = request
    if (isCrossSite(fields) && (writes || !isNavigation(fields))) return refused('cross-site')
    if (isOpen && !writes && (isHostItself(fields) || !isBrowser(fields))) return granted
    const access = isToken === undefined ? byPlace(request) : byToken(request, isToken)
    if (access.kind === 'refused') return access
    return writes && !isJson(fields) ? refused('not-json') : granted
  }
}
