import { resolve } from 'node:path'
import { createExtensionCheck } from '../../contracts/openapi/load-document.ts'
import { ApiDocument } from '../api-document.ts'
import type { OpenApiConfig, ServiceConfig } from '../config.ts'
import { faultAt, faultOf, faultWhen, type Path, type UnplacedFault, valueAt, withValueAt } from '../fault.ts'
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
  documentPaths(value).reduce(
    (filled, path) => withValueAt(filled, path, change(valueAt(filled, path))),
    value,
  )

/** Replaces the paths of documents by the documents, references included. `folder`: the one of the configuration file. */
export const readDocuments = async (value: unknown, folder: string): Promise<FilesReading> => {
  const faults: UnplacedFault[] = []
  const files: string[] = []
  let filled = value
  for (const path of documentPaths(value)) {
    const document = valueAt(value, path)
    if (typeof document !== 'string' || document === '') continue
    const { readApiDocument } = await import('../read-document.ts')
    const reading = await readApiDocument(resolve(folder, document))
    if (reading.kind === 'faults') faults.push(...reading.messages.map((message) => faultAt(path, message)))
    else {
      files.push(...reading.files)
      filled = withValueAt(filled, path, new ApiDocument(reading.document))
    }
  }
  return { value: filled, faults, files }
}

/** A misspelt operation or path would leave stored responses that a write has outdated. */
const resourceFaults = (
  { name, document, resources }: OpenApiConfig,
  rules: readonly { readonly operation?: string | undefined }[],
): UnplacedFault[] => {
  const { operations } = document.contract
  const path = ['services', name, 'resources']
  const faultIn = createExtensionCheck(operations)
  return [
    ...rules.flatMap(({ operation }, index) =>
      faultWhen(
        operation !== undefined && !operations.some(({ operationId }) => operationId === operation),
        [...path, index, 'operation'],
        'the document has no operation with this operationId',
      ),
    ),
    ...resources.flatMap((declared) => {
      const message = faultIn(declared)
      return faultOf(path, message && `${declared.operation}: ${message}`)
    }),
  ]
}

/** Rules may name operations of the document; the document itself was checked when it was read. */
export const documentFaults = (
  shape: ConfigShape['services'],
  services: readonly ServiceConfig[],
): UnplacedFault[] =>
  services.flatMap((service) => {
    const written = shape[service.name]
    if (service.contract !== 'openapi' || written?.contract !== 'openapi') return []
    const { operations } = service.document.contract
    const path = ['services', service.name]
    const unknown = written.cache.rules.flatMap(({ operation }, index) => {
      if (operation === undefined) return []
      const found = operations.find(({ operationId }) => operationId === operation)
      const isRead = found?.method === 'GET' || found?.method === 'HEAD'
      return faultWhen(
        !isRead,
        [...path, 'cache', 'rules', index, 'operation'],
        found === undefined
          ? 'the document has no operation with this operationId'
          : 'only responses to GET and HEAD are stored',
      )
    })
    const durations = operations.flatMap(({ method, template, cache }) =>
      faultWhen(
        cache !== undefined && parseDuration(cache.ttl) === undefined,
        [...path, 'document'],
        `x-trellis-cache of ${method} ${template}: ttl is not a duration such as 30s`,
      ),
    )
    return [...unknown, ...durations, ...resourceFaults(service, written.resources)]
  })
