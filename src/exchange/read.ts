import { conditionalHeaders } from '../http/conditional/preconditions.ts'
import { type AnyOrigin, plainOrigin, withCorsHeaders } from '../http/headers/cors.ts'
import { withTraces } from '../http/headers/credential-headers.ts'
import { type ResponseOrPromise, whenKnown } from '../http/message.ts'
import { isPost } from '../http/methods.ts'
import { codingsToStore } from './forward/accepted-codings.ts'
import type { Outgoing } from './forward/outgoing.ts'
import type { CacheDeps } from './ports.ts'
import { buildReading } from './read/build-reading.ts'
import { ExchangeRead } from './read/exchange-read.ts'
import { partitionFor, type ReadCaching } from './read/partition.ts'
import type { ValidatedContext } from './request-context.ts'

const besides = (...names: readonly string[]): ReadonlySet<string> =>
  new Set([...conditionalHeaders, ...names])

/**
 * Request headers that a read through the cache does not forward: preconditions, cookies that no server reads, and Origin where the
 * gateway itself allows origins, or where all are allowed.
 */
const strippedFromReads = {
  asAsked: { nothing: besides(), cookie: besides('cookie') },
  withoutOrigin: { nothing: besides('origin'), cookie: besides('cookie', 'origin') },
} as const

/** Of the cookies only the declared ones are sent: the key contains no others. */
const withDeclaredCookies = (
  headers: Readonly<Record<string, string>>,
  { variant }: ValidatedContext,
  stripped: ReadonlySet<string>,
): Readonly<Record<string, string>> =>
  variant?.cookie === undefined || !stripped.has('cookie') ? headers : { ...headers, cookie: variant.cookie }

/** The origin of an anonymous request, if its response is the same for all origins. */
const sharedOrigin = (
  { request: { headers }, service, matching }: ValidatedContext,
  { partition }: ReadCaching,
): { readonly origin: string; readonly policy: AnyOrigin } | undefined => {
  const { anyOrigins } = service.responses
  if (anyOrigins === undefined || headers['origin'] === undefined) return undefined
  if (partition !== 'public' || headers['authorization'] !== undefined) return undefined
  const origin = plainOrigin(headers)
  if (origin === undefined || matching.kind !== 'found') return undefined
  const policy = anyOrigins.askRoute(matching.row, matching.path)
  return policy instanceof Promise || policy?.isRepeated !== true ? undefined : { origin, policy }
}

/** Responds to a read from the cache, or fetches the response and stores it. */
export const readThrough = (
  deps: CacheDeps,
  requestContext: ValidatedContext,
  caching: ReadCaching,
  forwardOutgoing: (outgoing: Outgoing) => ResponseOrPromise,
): ResponseOrPromise => {
  // Where the gateway answers CORS itself, a stored response must not depend on the Origin of the first request.
  const stripsOrigin = requestContext.service.responses.cors !== undefined
  const shared = stripsOrigin ? undefined : sharedOrigin(requestContext, caching)
  const lists =
    stripsOrigin || shared !== undefined ? strippedFromReads.withoutOrigin : strippedFromReads.asAsked
  const stripped = caching.strip.length === 0 ? lists.nothing : lists.cookie
  const read = new ExchangeRead(
    requestContext,
    partitionFor(deps, caching, requestContext),
    stripped,
    deps.forwarding,
  )
  read.build = buildReading(deps, requestContext, read.key)
  const reply = deps.cache.response(read, (extra) =>
    forwardOutgoing({
      context: requestContext,
      effect: 'read',
      // A precondition of a POST is about what it changes (RFC 9110 §13.2.1): the response is fetched whole.
      extraHeaders: isPost(requestContext.method)
        ? {}
        : withDeclaredCookies(extra.headers, requestContext, stripped),
      // Of a miss alone.
      stripped: withTraces(requestContext.request.headers, stripped),
      acceptEncoding: codingsToStore(requestContext, extra.headers),
      background: extra.background,
      signal: extra.signal,
    }),
  )
  return whenKnown(reply, (response) => {
    const { record, method, service } = requestContext
    record.cache = response.outcome
    const { forDownstream } = response
    // A hit is current. Of what was awaited, such as a compressed form, something may have been invalidated meanwhile.
    record.isForDownstream =
      forDownstream !== undefined &&
      service.responses.downstream?.mayStore() === true &&
      (!(reply instanceof Promise) || deps.cache.stillStores(forDownstream))
    if (response.ageSeconds !== undefined) record.ageSeconds = response.ageSeconds
    return shared === undefined ? response : withCorsHeaders(response, shared.policy, shared.origin, method)
  })
}
