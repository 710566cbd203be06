import { foldedTargetKey, targetKey } from '../../cache/cache-key.ts'
import { headerValue, requestHeader } from '../../http/headers/header-lines.ts'
import type { ResponseHead } from '../../http/message.ts'
import { hasDestination } from '../../http/methods.ts'
import { folded, foldedTarget, targetOf, targetParts } from '../../http/targets.ts'
import type { WriteResponse } from '../../service/tagger.ts'
import type { ConfigSnapshot } from '../config-snapshot.ts'
import type { ValidatedContext } from '../request-context.ts'
import { type Service, upstreamTarget } from '../service.ts'
import { asTarget, namedTargets, type UnsafeRequest, unsafePaths } from './unsafe-paths.ts'

/** The parts of a write to an open service that RFC 9111 §4.4 uses. */
const unsafeRequest = ({
  service: { address, mount },
  method,
  request,
  target,
  policy,
}: ValidatedContext): UnsafeRequest => ({
  target,
  url: `${address.roots[0]}${target}`,
  roots: address.roots,
  publicRoot: address.publicRoot,
  mount,
  destination: hasDestination(method)
    ? requestHeader(request.headers, 'destination')?.replace(/^https?:\/\/[^/?#]*/i, '')
    : undefined,
  sparedByServerError: policy.profile === 'rfc-shared-cache',
})

/** The targets of the service in a header of its response, whose URLs are those for clients (http/headers/links.ts). */
const shownTargets = (
  { service, target }: ValidatedContext,
  value: string | undefined,
): readonly string[] => {
  const { publicRoot, publicHost } = service.address
  const roots = [publicRoot, `http://${publicHost}${service.mount}`]
  return namedTargets(value, { url: publicRoot + target, roots })
}

/** Characters for one of a target that clients send: each may be an escape. */
const maxSpelling = 3

/** A target as it is keyed, however the upstream spells it; undefined for one that is too long to be requested. */
const spelled = (service: Service, target: string): string | undefined => {
  if (target.length > maxSpelling * service.limits.urlBytes) return undefined
  const { path, query } = targetParts(target)
  const matching = service.contract.find('GET', path)
  return matching.kind === 'found' ? targetOf(matching.path, query) : undefined
}

/** Does Content-Location mark the response as a representation of the request target (RFC 9110 §8.7)? */
export const showsOwnTarget = (context: ValidatedContext, head: ResponseHead): boolean => {
  const { mount, address } = context.service
  const { basePath } = address
  // Of `/api/x` it is unknown then which side it is a path of.
  if (mount.length > basePath.length && mount.startsWith(`${basePath}/`)) return false
  const named = shownTargets(context, headerValue(head.headers, 'content-location'))
  return named.some((target) => spelled(context.service, target) === context.target)
}

/** The path of the resource that a write has created (RFC 9110 §15.3.2). */
export const createdPath = (
  context: ValidatedContext,
  { status, headers }: ResponseHead,
): string | undefined => {
  if (status !== 201 || !context.service.contract.invalidatesTargets) return undefined
  const [named] = shownTargets(context, headerValue(headers, 'location'))
  return named === undefined ? undefined : spelled(context.service, named)?.split('?', 1)[0]
}

/**
 * Tags of what a service has stored for a target, in every spelling where the contract does not know which of them are the same. Instances
 * of earlier versions know the first one only.
 */
const tagsOfTarget = ({ name, contract }: Service, target: string): readonly string[] => {
  const others = contract.invalidatesTargets ? foldedTargetKey(name, target) : undefined
  return others === undefined ? [targetKey(name, target)] : [targetKey(name, target), others]
}

/** The rest of a target behind a base path, as a target. */
const below = (base: string, target: string): string | undefined => {
  const rest = target.startsWith(base) ? target.slice(base.length) : undefined
  return rest !== undefined && /^(?:[/?]|$)/.test(rest) ? asTarget(rest) : undefined
}

/**
 * Tags of one resource in the other services of the same upstream, in every spelling. As texts: a URL object would spell the query in
 * another way.
 */
const tagsOfOthers = (snapshot: ConfigSnapshot, service: Service, target: string): readonly string[] => {
  const { path, query } = targetParts(target)
  const upstream = upstreamTarget(service.address, path, query)
  const form = foldedTarget(upstream)
  const others = snapshot.sharing(service).filter(({ contract }) => contract.invalidatesTargets)
  return others.flatMap(({ name, address: { basePath } }) => {
    const rests = [below(basePath, upstream), below(folded(basePath), form)]
    return rests.flatMap((rest) => (rest === undefined ? [] : [targetKey(name, rest)]))
  })
}

/** Tags of all that is stored for the URLs that the write changes, in whichever service they are. */
export const targetTags = (
  context: ValidatedContext,
  written: WriteResponse | undefined,
): readonly string[] => {
  const { service, snapshot, request, target } = context
  const authority =
    requestHeader(request.headers, ':authority') ?? requestHeader(request.headers, 'host') ?? ''
  const tags = unsafePaths(unsafeRequest(context), written).flatMap((path) => {
    const owner = path === service.mount + target ? service : snapshot.serviceAt(authority, path)
    const named = owner === undefined ? undefined : spelled(owner, asTarget(path.slice(owner.mount.length)))
    if (owner === undefined || named === undefined) return []
    const isReached = owner.name === service.name && !service.contract.invalidatesTargets
    return [...(isReached ? [] : tagsOfTarget(owner, named)), ...tagsOfOthers(snapshot, owner, named)]
  })
  return [...new Set(tags)]
}
