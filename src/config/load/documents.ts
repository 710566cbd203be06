import { resolve } from 'node:path'
import { createExtensionCheck } from '../../openapi/document/load-document.ts'
import { ApiDocument } from '../api-document.ts'
import type { OpenApiConfig, ServiceConfig } from '../config.ts'
import { closestName, faultAt, type Path, type UnplacedFault, valueAt, withValueAt } from '../fault.ts'
import { parseDuration } from '../quantities.ts'
import type { ConfigShape } from '../schema/shape.ts'
import type { FilesReading } from './source.ts'

const documentPaths = (value: unknown): readonly Path[] => {
  const services = valueAt(value, ['services'])
  return Object.keys(typeof services === 'object' && services !== null ? services : {})
    .filter((name) => valueAt(value, ['services', name, 'contract']) === 'openapi')
    .map((name) => ['services', name, 'document'])
}

/** A copy of the content of a configuration with other documents. */
export const withDocuments = (value: unknown, change: (document: unknown) => unknown): unknown =>
  documentPaths(value).reduce((tree, path) => withValueAt(tree, path, change(valueAt(tree, path))), value)

/** Replaces the paths of documents by the documents, references included. `folder`: the one of the configuration file. */
export const readDocuments = async (value: unknown, folder: string): Promise<FilesReading> => {
  const faults: UnplacedFault[] = []
  const files: string[] = []
  let tree = value
  for (const path of documentPaths(value)) {
    const document = valueAt(value, path)
    if (typeof document !== 'string' || document === '') continue
    if (/^[a-z]+:/i.test(document)) {
      faults.push(faultAt(path, 'expected the path of a file, without a scheme: nothing is fetched'))
      continue
    }
    const { readApiDocument } = await import('../read-document.ts')
    const reading = await readApiDocument(resolve(folder, document))
    if (reading.kind === 'faults') faults.push(...reading.messages.map((message) => faultAt(path, message)))
    else {
      files.push(...reading.files)
      tree = withValueAt(tree, path, new ApiDocument(reading.document))
    }
  }
  return { value: tree, faults, files }
}

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
  { name, document, resources }: OpenApiConfig,
  rules: readonly { readonly operation?: string | undefined }[],
): Iterable<UnplacedFault> {
  const { operations } = document.contract
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
export function* documentFaults(
  service: ServiceConfig,
  source: ConfigShape['services'][string],
): Iterable<UnplacedFault> {
  if (service.contract !== 'openapi' || source.contract !== 'openapi') return
  const { operations } = service.document.contract
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
}
