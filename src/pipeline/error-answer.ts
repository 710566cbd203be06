import { GatewayError } from '../errors.ts'
import { otherCredential } from '../http/credential-fields.ts'
import {
  type GatewayRequest,
  type GatewayResponse,
  type RequestFields,
  wordpressJson,
} from '../http/message.ts'
import type { Row } from '../service/row.ts'
import type { Invalid } from '../service/validation.ts'
import type { Service } from './service.ts'

type Contract = Service['contract']

const message = (error: GatewayError): string =>
  error.detail === undefined ? error.message : `${error.message} ${error.detail}`

/** RFC 9457: `type` about:blank means that the status is all there is to it; `code` is an extension member. */
const problem = (error: GatewayError): unknown => ({
  type: 'about:blank',
  title: error.message,
  status: error.facts.status,
  ...(error.detail === undefined ? {} : { detail: error.detail }),
  code: error.code,
})

const bodies: Readonly<Record<Contract, (error: GatewayError) => unknown>> = {
  site: (error) => ({
    code: error.facts.siteCode ?? `trellis_${error.code}`,
    message: message(error),
    data: { status: error.facts.status },
  }),
  plants: (error) => ({ error: error.facts.status, message: message(error) }),
  openapi: problem,
  open: problem,
}

const contentTypes: Readonly<Record<Contract, string>> = {
  site: 'application/json; charset=UTF-8',
  plants: 'application/json; charset=utf-8',
  openapi: 'application/problem+json',
  open: 'application/problem+json',
}

/** An answer that the gateway makes itself, complete with its framing. */
const madeAnswer = (
  status: number,
  contentType: string,
  text: string,
  fields: readonly string[] = [],
): GatewayResponse => {
  const content = Buffer.from(text)
  return {
    status,
    fields: ['Content-Type', contentType, 'Content-Length', String(content.length), ...fields],
    content,
  }
}

export const asGatewayError = (thrown: unknown): GatewayError =>
  thrown instanceof GatewayError ? thrown : new GatewayError('internal', { cause: thrown })

const errorFields = (error: GatewayError): string[] => {
  const fields = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff', ...error.fields]
  if (error.retryAfterSeconds !== undefined) fields.push('Retry-After', String(error.retryAfterSeconds))
  // The rest of the content was not read; the bytes behind it must not be parsed as a request.
  if (error.code === 'content_too_large' || error.code === 'request_timeout') {
    fields.push('Connection', 'close')
  }
  return fields
}

/** What WordPress sends with every answer. */
export const wordpressFields = (publicRoot: string): string[] => [
  ...['X-Robots-Tag', 'noindex'],
  ...['Link', `<${publicRoot}/>; rel="https://api.w.org/"`],
]

const written = (contract: Contract, body: unknown): string =>
  contract === 'site' ? wordpressJson(body) : JSON.stringify(body)

/** Makes a response of an error, in the format of the service; undefined: the service is unknown. */
export const errorAnswer = (
  service: Pick<Service, 'contract' | 'publicRoot'> | undefined,
  error: GatewayError,
  /** Of a request that does not reach the phases, which add it to all others. */
  id?: string,
): GatewayResponse => {
  const contract = service?.contract ?? 'open'
  const body = error.body ?? bodies[contract](error)
  return madeAnswer(error.facts.status, contentTypes[contract], written(contract, body), [
    ...(service?.contract === 'site' ? wordpressFields(service.publicRoot) : []),
    ...errorFields(error),
    ...(id === undefined ? [] : ['X-Request-Id', id]),
  ])
}

/** Lists that WordPress shows to anonymous clients, unless a parameter asks for private data. */
const publicLists: ReadonlySet<string> = new Set(['posts', 'pages', 'media', 'blocks', 'categories', 'tags'])
/** `_envelope` moves what is here into the content. */
const asksForMore = /context|post|_envelope/i

/** The request that is refused. */
type Refused = {
  readonly service: Pick<Service, 'contract' | 'publicRoot'>
  readonly row: Row
  readonly query: string
  readonly fields: RequestFields
}

const mayHaveRights = (fields: RequestFields): boolean =>
  fields['authorization'] !== undefined ||
  fields['cookie'] !== undefined ||
  fields['x-wp-nonce'] !== undefined ||
  otherCredential(fields, []) !== undefined

/** The methods that the client may use, as far as they follow from the route and the credential's presence. */
const allowedTo = ({ row, query, fields }: Refused): string | undefined => {
  if (row.kind === 'batch') return 'POST'
  const isPublic = row.kind === 'collection' && publicLists.has(row.collection)
  return isPublic && !mayHaveRights(fields) && !asksForMore.test(query) ? 'GET' : undefined
}

/** WordPress sends these to logged-in users; any credential is taken for one of those. */
export const callerFields = (fields: RequestFields): string[] =>
  mayHaveRights(fields)
    ? [
        ...['Expires', 'Wed, 11 Jan 1984 05:00:00 GMT'],
        ...['Cache-Control', 'no-cache, must-revalidate, max-age=0, no-store, private'],
      ]
    : []

const siteRefusal = (refused: Refused, { status, code, body }: Invalid): GatewayResponse => {
  const general = [...wordpressFields(refused.service.publicRoot), 'X-Content-Type-Options', 'nosniff']
  // WordPress makes this check first, and answers as a script.
  if (code === 'rest_callback_invalid') {
    return madeAnswer(status, 'application/javascript; charset=UTF-8', written('site', body), general)
  }
  const allow = allowedTo(refused)
  return madeAnswer(status, contentTypes.site, written('site', body), [
    ...general,
    ...(allow === undefined ? [] : ['Allow', allow]),
    ...callerFields(refused.fields),
  ])
}

/**
 * Does its refusal follow from the target alone? Without content, and without fields that validation or the response read, every
 * client is refused alike.
 */
export const isRefusedByTargetAlone = ({ method, fields, content }: GatewayRequest): boolean =>
  method === 'GET' &&
  content === undefined &&
  fields['content-type'] === undefined &&
  fields['x-http-method-override'] === undefined &&
  !mayHaveRights(fields)

/** A refusal whose body a validator has already made in the service's shape. */
export const refusalAnswer = (refused: Refused, refusal: Invalid): GatewayResponse => {
  const { contract } = refused.service
  if (contract === 'site') return siteRefusal(refused, refusal)
  const fields = ['X-Content-Type-Options', 'nosniff']
  return madeAnswer(refusal.status, contentTypes[contract], written(contract, refusal.body), fields)
}
