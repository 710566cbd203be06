import { parseVary } from '../http/caching-fields.ts'
import {
  type FieldLines,
  fieldValue,
  type GatewayResponse,
  type RequestFields,
  withField,
} from '../http/message.ts'
import type { Row } from '../service/row.ts'

// WordPress allows pages of every origin to read its REST interface: it repeats the Origin, and says Vary: Origin. Plugins have
// policies of their own for their routes. What an upstream allows is read from its answers to an origin that nobody can have listed.

/** What an upstream allows every origin to do. */
export type AnyOrigin = {
  /** The origin is repeated, so that one stored response can serve every origin; otherwise the upstream sends `*`. */
  readonly isRepeated: boolean
  /** Its Access-Control-* fields without Access-Control-Allow-Origin. */
  readonly others: FieldLines
}

const allowOrigin = 'access-control-allow-origin'

/** One of the fields without the others is another policy: a shop allows its methods to all, but names the origins. */
const policyFields = [allowOrigin, 'access-control-allow-methods', 'access-control-allow-credentials']

/** Of each route this much is remembered at most; WordPress sends 270 bytes. */
const mostPolicyBytes = 2048

/** As browsers write it; what WordPress would clean before it answers it is left to WordPress. */
const plain = /^(?:null|https?:\/\/[a-z\d](?:[a-z\d.-]{0,251}[a-z\d])?(?::\d{1,5})?)$/

/** The Origin of a request, when the permission for it can be written without asking. */
export const plainOrigin = (fields: RequestFields): string | undefined => {
  const origin = fields['origin']
  return typeof origin === 'string' && plain.test(origin) ? origin : undefined
}

const variesByOrigin = (fields: FieldLines): boolean => {
  const vary = parseVary(fields)
  return vary.kind === 'fields' && vary.names.includes('origin')
}

/** What a response to a made-up origin shows: if that is allowed, every origin is. Undefined: not every origin. */
export const anyOriginOf = (fields: FieldLines, origin: string): AnyOrigin | undefined => {
  const allowed = fieldValue(fields, allowOrigin)
  const isRepeated = allowed === origin && variesByOrigin(fields)
  if (!isRepeated && allowed !== '*') return undefined
  const others: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] as string).toLowerCase()
    if (name.startsWith('access-control-') && name !== allowOrigin) others.push(...fields.slice(i, i + 2))
  }
  return others.join('').length > mostPolicyBytes ? undefined : { isRepeated, others }
}

/** The lines with the permission for one origin; no field of them is sent twice. */
const withPermission = (lines: FieldLines, { isRepeated, others }: AnyOrigin, origin: string): FieldLines => {
  if (policyFields.some((name) => fieldValue(lines, name) !== undefined)) return lines
  const permitted = [...lines, 'Access-Control-Allow-Origin', isRepeated ? origin : '*']
  for (let i = 0; i < others.length; i += 2) {
    const name = others[i] as string
    if (fieldValue(lines, name) === undefined) permitted.push(name, others[i + 1] as string)
  }
  return permitted
}

/** A response of the upstream to a request without Origin, for one origin. HEAD alone gets no Vary without an Origin. */
export const permitted = <Response extends GatewayResponse>(
  response: Response,
  policy: AnyOrigin,
  origin: string,
  method: string,
): Response => {
  const varies = variesByOrigin(response.fields)
  if (!varies && method !== 'HEAD') return response
  const fields = withPermission(response.fields, policy, origin)
  return {
    ...response,
    fields: varies || fields === response.fields ? fields : [...fields, 'Vary', 'Origin'],
  }
}

/** A response that the gateway made, with what the upstream would have allowed. */
export const ownAnswerFor = (
  response: GatewayResponse,
  policy: AnyOrigin | undefined,
  origin: string | undefined,
): GatewayResponse => {
  const vary = fieldValue(response.fields, 'vary')
  const fields = variesByOrigin(response.fields)
    ? response.fields
    : withField(response.fields, 'Vary', vary === undefined ? 'Origin' : `Origin, ${vary}`)
  return {
    ...response,
    fields: policy === undefined || origin === undefined ? fields : withPermission(fields, policy, origin),
  }
}

/** What is known of the origins that a site allows; `undefined` where it is unknown, or where not every origin is allowed. */
export type AnyOrigins = {
  /** By the last answer to the index. */
  site(): AnyOrigin | undefined
  route(row: Row): AnyOrigin | undefined
  /** Asks the upstream where that is due. A promise while a route is asked for the first time; it never rejects. */
  askRoute(row: Row, path: string): AnyOrigin | undefined | Promise<AnyOrigin | undefined>
}

/** Questions to one upstream at a time: a client chooses when a route is asked for the first time. */
const mostQuestions = 4

type Route = {
  /** The reading of the index after which it was asked last. */
  reading: number
  known: { readonly policy: AnyOrigin | undefined } | undefined
  asked: Promise<AnyOrigin | undefined> | undefined
}

/** Each route is asked once after each reading of the index. `ask` rejects where the upstream gave no answer of its own. */
export const createAnyOrigins = (
  ask: (path: string) => Promise<AnyOrigin | undefined>,
): AnyOrigins & { indexRead(policy: AnyOrigin | undefined): void } => {
  const routes = new WeakMap<Row, Route>()
  let site: AnyOrigin | undefined
  let reading = 0
  let questions = 0
  const question = async (route: Route, path: string): Promise<AnyOrigin | undefined> => {
    questions += 1
    try {
      route.known = { policy: await ask(path) }
    } catch {
      // The next request asks again, and does not wait for it.
      route.known ??= { policy: undefined }
      route.reading = -1
    } finally {
      questions -= 1
    }
    return route.known.policy
  }
  const routeOf = (row: Row): Route => {
    const route = routes.get(row) ?? { reading: -1, known: undefined, asked: undefined }
    routes.set(row, route)
    return route
  }
  return {
    site: () => site,
    route: (row) => routes.get(row)?.known?.policy,
    askRoute: (row, path) => {
      const route = routeOf(row)
      if (route.reading !== reading && questions < mostQuestions) {
        route.reading = reading
        route.asked = question(route, path)
      }
      return route.known === undefined ? route.asked : route.known.policy
    },
    indexRead: (policy) => {
      site = policy
      reading += 1
    },
  }
}
