import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import { type RequestFields, requestField } from '../http/fields.ts'
import type { AccessRefusal } from './events.ts'

/** What decides whether a request to the admin side is answered. */
export type AdminRequest = {
  readonly writes: boolean
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

/** A page of another origin made the browser send this. Programs send neither field. */
const isCrossSite = (fields: RequestFields): boolean => {
  const site = requestField(fields, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true
  const origin = requestField(fields, 'origin')
  if (origin === undefined) return false
  return !URL.canParse(origin) || new URL(origin).host !== requestField(fields, 'host')
}

/** What a proxy on this host passes on is not the operator at this host. */
const isForwarded = (fields: RequestFields): boolean =>
  fields['forwarded'] !== undefined || fields['x-forwarded-for'] !== undefined

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
 * changes come from this host. No page of another site may make a browser change anything, in either case.
 */
export const createAccess = (token: string): ((request: AdminRequest) => Access) => {
  const isToken = token === '' ? undefined : createTokenCheck(token)
  return (request) => {
    if (request.writes && isCrossSite(request.fields)) return refused('cross-site')
    const access = isToken === undefined ? byPlace(request) : byToken(request, isToken)
    if (access.kind === 'refused') return access
    return request.writes && !isJson(request.fields) ? refused('not-json') : granted
  }
}
