import { decideCaching } from '../../cache/decide-caching.ts'
import type { PostResponse } from '../../cache/post-response.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { isPost } from '../../http/methods.ts'
import { tagConditions } from '../forward/tag-conditions.ts'
import type { CacheDeps } from '../ports.ts'
import { ExchangeRead } from '../read/exchange-read.ts'
import { publicPart } from '../read/partition.ts'
import type { ValidatedContext } from '../request-context.ts'
import { showsOwnTarget } from './written-targets.ts'

/** RFC 9110 §9.3.3: the response to a POST may serve later reads; only the profile `rfc-shared-cache` uses that. */
export const storablePost = (
  { cache, forwarding }: CacheDeps,
  context: ValidatedContext,
): PostResponse | undefined => {
  const { method, policy, service } = context
  if (!isPost(method) || policy.profile !== 'rfc-shared-cache' || service.contract.hasRoutes) return undefined
  const { uncacheable, identity } = context
  const asGet = { method: 'GET', headers: context.request.headers, hasContent: false, uncacheable, identity }
  if (decideCaching(asGet, policy).kind !== 'read') return undefined
  return cache.postResponse(new ExchangeRead(context, publicPart, tagConditions, forwarding))
}

/** How this response is stored; undefined: it is not. To be asked before the POST drops anything. */
export const storageOfPost = (
  storable: PostResponse | undefined,
  context: ValidatedContext,
  response: GatewayResponse,
): PostResponse | undefined =>
  storable !== undefined && showsOwnTarget(context, response) && storable.isStorable(response)
    ? storable
    : undefined
