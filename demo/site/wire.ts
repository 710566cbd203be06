import { type RequestHeaders, requestHeader } from '../../src/http/headers/header-lines.ts'
import type { EmbeddedReply } from '../embedded-server.ts'
import type { SiteResponse } from './call.ts'
import type { Caller } from './caller.ts'
import { phpMap } from './fields.ts'

/** JSON as PHP writes it: slashes escaped, everything beyond ASCII as `\uXXXX`. */
const phpJson = (value: unknown): string =>
  JSON.stringify(value)
    .replaceAll('/', '\\/')
    .replace(/[\u0080-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** What the wire form of a response depends on. */
export type WireContext = {
  readonly method: string
  readonly query: string
  readonly fields: RequestHeaders
  readonly caller: Caller
  readonly root: string
  /** Responses that must not be stored although the request is anonymous: a bad nonce. */
  readonly noCache: boolean
}

const noCacheFields = {
  Expires: 'Wed, 11 Jan 1984 05:00:00 GMT',
  'Cache-Control': 'no-cache, must-revalidate, max-age=0, no-store, private',
}

const crossOrigin = (context: WireContext): Record<string, string> => {
  const origin = requestHeader(context.fields, 'origin')
  const vary: Record<string, string> =
    origin !== undefined || (context.caller.role === 'anonymous' && context.method === 'GET')
      ? { Vary: 'Origin' }
      : {}
  if (origin === undefined) return vary
  return {
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Methods': 'OPTIONS, GET, POST, PUT, PATCH, DELETE',
    'Access-Control-Allow-Credentials': 'true',
    ...vary,
  }
}

const fieldsOf = (response: SiteResponse, context: WireContext): Record<string, string> => ({
  'Content-Type': 'application/json; charset=UTF-8',
  'X-Robots-Tag': 'noindex',
  Link: `<${context.root}/>; rel="https://api.w.org/"`,
  'X-Content-Type-Options': 'nosniff',
  'Access-Control-Expose-Headers': 'X-WP-Total, X-WP-TotalPages, Link',
  'Access-Control-Allow-Headers': 'Authorization, X-WP-Nonce, Content-Disposition, Content-MD5, Content-Type',
  ...response.headers,
  ...(context.caller.role === 'anonymous' && !context.noCache ? {} : noCacheFields),
  ...crossOrigin(context),
})

const isIdentifier = /^[A-Za-z_$][\w$.]{0,99}$/

/** The answer with its fields and JSON, and the envelopes that the query asks for. */
export const wireReply = (response: SiteResponse, context: WireContext): EmbeddedReply => {
  const parameters = new URLSearchParams(context.query)
  const fields = fieldsOf(response, context)
  if (typeof response.body === 'string') {
    return { status: response.status, fields, content: Buffer.from(response.body) }
  }
  const enveloped = parameters.has('_envelope')
  const body = enveloped
    ? { body: response.body, status: response.status, headers: phpMap(response.headers) }
    : response.body
  const status = enveloped ? 200 : response.status
  const callback = parameters.get('_jsonp')
  if (callback === null) return { status, fields, content: Buffer.from(phpJson(body)) }
  if (!isIdentifier.test(callback)) {
    const fault = { code: 'rest_callback_invalid', message: 'Invalid JSONP callback function.' }
    return { status: 400, fields, content: Buffer.from(phpJson(fault)) }
  }
  const script = { ...fields, 'Content-Type': 'application/javascript; charset=UTF-8' }
  return { status, fields: script, content: Buffer.from(`/**/${callback}(${phpJson(body)})`) }
}
