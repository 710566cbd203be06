import type { OpenApiConfig, ServiceConfig } from '../config/config.ts'
import type { ServiceSource } from '../config/contract-config.ts'
import { closestName, faultAt, type Path, type UnplacedFault } from '../config/fault.ts'
import { parseDuration } from '../config/quantities.ts'
import { apiDocumentOf } from './document/api-document.ts'
import { createExtensionCheck } from './document/load-document.ts'
import { batchPath } from './document/operation.ts'

const unknownOperation = (
  path: Path,
  name: string,
  operations: readonly { readonly operationId: string }[],
): UnplacedFault => {
  const fault = faultAt(path, 'the document has no operation with this operationId')
  const suggestion = closestName(
    name,
    operations.map(({ operationId }) => operationId),
  )
  return suggestion === undefined ? fault : { ...fault, suggestion }
}

/** A misspelt operation or path would leave stored responses that a write has made stale. */
function* resourceFaults(
  service: OpenApiConfig,
  rules: readonly { readonly operation?: string | undefined }[],
): Iterable<UnplacedFault> {
  const { name, resources } = service
  const { operations } = apiDocumentOf(service).contract
  const path = ['services', name, 'resources']
  for (const [index, { operation }] of rules.entries()) {
    if (operation !== undefined && !operations.some(({ operationId }) => operationId === operation))
      yield unknownOperation([...path, index, 'operation'], operation, operations)
  }
  if (resources.length === 0) return
  const faultIn = createExtensionCheck(operations)
  for (const resource of resources) {
    const message = faultIn(resource)
    if (message !== undefined) yield faultAt(path, `${resource.operation}: ${message}`)
  }
}

/** Rules may name operations of the document; the document itself was checked when it was read. */
export function* documentFaults(service: ServiceConfig, source: ServiceSource): Iterable<UnplacedFault> {
  if (service.contract !== 'openapi' || source.contract !== 'openapi') return
  const { operations, rows } = apiDocumentOf(service).contract
  const path = ['services', service.name]
  for (const [index, { operation }] of source.cache.rules.entries()) {
    if (operation === undefined) continue
    const match = operations.find(({ operationId }) => operationId === operation)
    const at = [...path, 'cache', 'rules', index, 'operation']
    if (match === undefined) yield unknownOperation(at, operation, operations)
    else if (!['GET', 'HEAD', 'QUERY'].includes(match.method))
      yield faultAt(at, 'only responses to GET, HEAD and QUERY are stored')
  }
  for (const { method, template, cache } of operations) {
    if (cache !== undefined && parseDuration(cache.ttl) === undefined)
      yield faultAt(
        [...path, 'document'],
        `x-trellis-cache of ${method} ${template}: ttl is not a duration such as 30s`,
      )
  }
  yield* resourceFaults(service, source.resources)
  if (service.batch !== undefined && rows.some(({ template }) => template === batchPath))
    yield faultAt([...path, 'batch'], `the document already has a path ${batchPath}`)
}
