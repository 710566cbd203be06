import { type RequestHeaders, requestHeader } from '../../src/http/headers/header-lines.ts'
import type { Validation, ValidationInput } from '../../src/service/contract.ts'
import type { Endpoint, Method, RouteMatch, Row } from '../../src/service/row.ts'
import type { Call, Resource, Site, SiteResponse } from './call.ts'
import type { Caller } from './caller.ts'
import { filterFields } from './field-filter.ts'
import { methodsOf } from './index-document.ts'
import { SiteFault } from './site-fault.ts'

/** A request to the site: from the wire, from a batch, or from the site itself when it embeds. */
export type Incoming = {
  readonly method: string
  /** Relative to the REST root, with its leading slash. */
  readonly path: string
  readonly query: string
  readonly fields: RequestHeaders
  readonly content: Buffer
  readonly caller: Caller
}

/** Runs requests against the rows. */
export type Dispatcher = {
  /** The row and endpoint that would answer, or undefined. */
  match(method: string, path: string): Matched | undefined
  /** The response to be given instead of running it, or undefined when route and arguments are right. */
  refusal(incoming: Incoming): SiteResponse | undefined
  response(incoming: Incoming): SiteResponse
  /** The field `Allow` of what the request names, as far as the caller has rights. */
  allow(incoming: Incoming): Readonly<Record<string, string>>
}

/** What a dispatcher is made of. */
export type DispatcherParts = {
  readonly site: Site
  readonly unlisted: readonly Row[]
  find(method: string, path: string): RouteMatch
  validate(input: ValidationInput): Validation
  resourceOf(row: Row): Resource | undefined
}

type Matched = {
  readonly row: Row
  readonly endpoint: Endpoint
  readonly pathParameters: Readonly<Record<string, string>>
}

export const noRoute = new SiteFault(
  404,
  'rest_no_route',
  'No route was found matching the URL and request method.',
)

export const faultResponse = (fault: SiteFault): SiteResponse => ({
  status: fault.status,
  headers: {},
  body: fault.body,
})

const caught = (run: () => SiteResponse): SiteResponse => {
  try {
    return run()
  } catch (error) {
    if (error instanceof SiteFault) return faultResponse(error)
    throw error
  }
}

const asMethod = (method: string): string => (method === 'HEAD' ? 'GET' : method)

/** The patterns of the unlisted rows are the demo's own and simple; they need no router. */
const unlistedMatcher = (rows: readonly Row[]) => {
  const compiled = rows.map((row) => ({
    row,
    pattern: new RegExp(`^${row.pattern.replaceAll('(?P<', '(?<')}$`, 'i'),
  }))
  return (method: string, path: string): Matched | undefined => {
    if (path.length > 200) return undefined
    for (const { row, pattern } of compiled) {
      const match = pattern.exec(path)
      const endpoint = row.endpoints.find((one) => one.methods.includes(asMethod(method) as Method))
      if (match !== null && endpoint !== undefined)
        return { row, endpoint, pathParameters: { ...match.groups } }
    }
    return undefined
  }
}

const isJsonOrForm = (type: string): boolean => /json|x-www-form-urlencoded/i.test(type)

const validationInput = (incoming: Incoming, matched: Matched): ValidationInput => {
  const type = requestHeader(incoming.fields, 'content-type')
  const method = asMethod(incoming.method)
  // WordPress takes no notice of content that is neither JSON nor a form; files are read by their resource.
  const unread = method === 'GET' || incoming.content.length === 0 || !isJsonOrForm(type ?? '')
  return {
    ...matched,
    method,
    query: incoming.query,
    contentType: unread ? undefined : type,
    content: unread ? undefined : incoming.content,
  }
}

const callOf = (site: Site, incoming: Incoming, matched: Matched, args: Call['args']): Call => ({
  site,
  method: asMethod(incoming.method),
  row: matched.row,
  caller: incoming.caller,
  args: { ...matched.pathParameters, ...args },
  path: matched.pathParameters,
  query: incoming.query,
  fields: incoming.fields,
  content: incoming.content,
})

/** `Allow` names the methods that this caller may use on this very resource, so it differs by caller. */
const allowed = (call: Call, resource: Resource): Readonly<Record<string, string>> => {
  const methods = methodsOf(call.row).filter((method) => {
    try {
      resource.permit({ ...call, method })
      return true
    } catch {
      return false
    }
  })
  return methods.length === 0 ? {} : { Allow: methods.join(', ') }
}

const runCall = (call: Call, resource: Resource): SiteResponse =>
  caught(() => {
    resource.check?.(call)
    resource.permit(call)
    const response = resource.run(call)
    return { ...response, body: filterFields(call.query, response.body) }
  })

/** Builds the dispatcher of one site. */
export const createDispatcher = (parts: DispatcherParts): Dispatcher => {
  const matchUnlisted = unlistedMatcher(parts.unlisted)
  const match = (method: string, path: string): Matched | undefined => {
    const routeMatch = parts.find(method, path)
    if (routeMatch.kind === 'found') return routeMatch
    // A listed path may have further methods in an unlisted row only when it is unlisted altogether.
    return routeMatch.kind === 'unlisted' ? matchUnlisted(method, routeMatch.path) : undefined
  }
  const check = (incoming: Incoming) => {
    const matched = match(incoming.method, incoming.path)
    const resource = matched && parts.resourceOf(matched.row)
    if (matched === undefined || resource === undefined) return { refused: faultResponse(noRoute) }
    const validation = parts.validate(validationInput(incoming, matched))
    if (validation.kind === 'valid') {
      return { call: callOf(parts.site, incoming, matched, validation.arguments), resource }
    }
    const call = callOf(parts.site, incoming, matched, {})
    const headers = allowed(call, resource)
    return { refused: { status: validation.status, headers, body: validation.body } }
  }
  return {
    match,
    allow: (incoming) => {
      const matched = match(incoming.method, incoming.path)
      const resource = matched && parts.resourceOf(matched.row)
      return matched && resource ? allowed(callOf(parts.site, incoming, matched, {}), resource) : {}
    },
    refusal: (incoming) => check(incoming).refused,
    response: (incoming) => {
      const checked = check(incoming)
      if (checked.refused !== undefined) return checked.refused
      const response = runCall(checked.call, checked.resource)
      return { ...response, headers: { ...response.headers, ...allowed(checked.call, checked.resource) } }
    },
  }
}
