import type { Contract } from '../service/contract.ts'
import { hasUnseenCredential, isPublicOperation, type Operation } from './document/operation.ts'
import type { Resources } from './document/resources.ts'

const scopeOf = (operation: Operation): string =>
  hasUnseenCredential(operation)
    ? 'none, because the operation takes a credential that the document does not describe'
    : 'credential, because the operation takes one'

/** The facts of the document about an operation, with their effect on stored responses. */
const operationFacts = (operation: Operation): Readonly<Record<string, unknown>> => {
  const { operationId, parameters, cache, effect, isAmbiguous } = operation
  const keyed = parameters.filter(({ location }) => location === 'header' || location === 'cookie')
  return {
    ...(operationId === '' ? {} : { operation: operationId }),
    ...(isAmbiguous ? { unchecked: 'the document has several operations for this method and path' } : {}),
    ...(cache === undefined
      ? {}
      : { 'x-trellis-cache': `ttl ${cache.ttl}; rules of the configuration come first` }),
    ...(effect === 'as-method'
      ? {}
      : { effect: effect === 'writes' ? 'writes, by x-trellis-writes' : 'reads only, by x-trellis-safe' }),
    ...(isPublicOperation(operation) ? {} : { scope: scopeOf(operation) }),
    ...(keyed.length === 0
      ? {}
      : { partOfTheCacheKey: keyed.map(({ name, location }) => `${location} ${name}`) }),
  }
}

/** The kind of a path with the reason, and the other paths that its writes change; none where that does not matter. */
const resourceFacts = (
  resources: Resources | undefined,
  operation: Operation,
): { readonly resource?: string } => {
  const resource = resources?.of(operation)
  if (resource === undefined) return {}
  const isRead = ['GET', 'HEAD', 'OPTIONS'].includes(operation.method)
  const isWrite = operation.effect === 'writes' || (!isRead && operation.effect !== 'safe')
  const { kind, reason, target, invalidates } = resource
  const text =
    kind === 'unknown' ? `unknown: ${reason}` : isWrite && kind === 'part' ? `action on ${target}` : reason
  return isWrite && invalidates !== undefined
    ? {
        resource: `${text}; invalidates ${invalidates.length === 0 ? 'nothing else' : invalidates.join(', ')}`,
      }
    : { resource: text }
}

/** What is known of an operation, for `trellis explain` and `trellis routes`; undefined: the endpoint has none. */
export const describeOperation = (
  resources: Resources | undefined,
  operation: Operation | undefined,
): ReturnType<Contract['describe']> =>
  operation === undefined ? {} : { ...operationFacts(operation), ...resourceFacts(resources, operation) }
