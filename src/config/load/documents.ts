import { resolve } from 'node:path'
import type { ContractConfig } from '../contract-config.ts'
import { faultAt, type Path, type UnplacedFault, valueAt, withValueAt } from '../fault.ts'
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
export const readDocuments = async (
  value: unknown,
  folder: string,
  { readDocument }: Pick<ContractConfig, 'readDocument'>,
): Promise<FilesReading> => {
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
    const reading = await readDocument(resolve(folder, document))
    if (reading.kind === 'faults') faults.push(...reading.messages.map((message) => faultAt(path, message)))
    else {
      files.push(...reading.files)
      tree = withValueAt(tree, path, reading.document)
    }
  }
  return { value: tree, faults, files }
}
