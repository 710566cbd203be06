import type { BuildReading } from '../../cache/cache-read.ts'
import { GatewayError } from '../../errors.ts'
import { requestHeader } from '../../http/headers/header-lines.ts'
import type { CacheDeps } from '../ports.ts'
import type { RequestContext, ValidatedContext } from '../request-context.ts'

const buildHeader = 'trellis-build'

/** The URL as the client has sent it, for its build knows no other spelling: a path where the service answers every host. */
const urlOf = ({ service: { address, hosts, mount }, request: { target } }: RequestContext): string =>
  hosts.length === 0 ? target : address.publicRoot.slice(0, address.publicRoot.length - mount.length) + target

/** Where a read of a build records its response; undefined for other reads. `key`: '' where the cache has none. */
export const buildReading = (
  { cache }: Pick<CacheDeps, 'cache'>,
  requestContext: ValidatedContext,
  key: string,
): BuildReading | undefined => {
  const { headers } = requestContext.request
  if (headers[buildHeader] === undefined) return undefined
  const id = requestHeader(headers, buildHeader) ?? ''
  const reading = cache.buildReading(id, urlOf(requestContext), key)
  // Its earlier reads are not known: what the build would be told of changes would lack them.
  if (reading === undefined) throw new GatewayError('unknown_build')
  return reading
}

/** A read of a build that the gateway has refused, or that has failed: what its page shows then may change. */
export const recordRefusal = ({ cache }: Pick<CacheDeps, 'cache'>, requestContext: RequestContext): void => {
  const id = requestHeader(requestContext.request.headers, buildHeader)
  if (id !== undefined) cache.buildReading(id, urlOf(requestContext), '')?.usedUnknown()
}
