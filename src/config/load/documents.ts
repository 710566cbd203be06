import { readFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { LineCounter, parseDocument } from 'yaml'
import { type ApiBundle, namedFiles } from '../../contracts/openapi/bundle.ts'
import { createExtensionCheck, loadDocument } from '../../contracts/openapi/load-document.ts'
import type { DocumentFault } from '../../contracts/openapi/read-operation.ts'
import { bundleText } from '../api-document.ts'
import type { OpenApiConfig, ServiceConfig } from '../config.ts'
import { faultAt, faultWhen, type Path, type Position, type UnplacedFault } from '../fault.ts'
import { parseDuration } from '../quantities.ts'
import { unreadableFile } from './secret-files.ts'
import { documentLocator } from './source.ts'
import { valueAt, withValueAt } from './value-at.ts'

const mostBytes = 64 * 1024 * 1024
const mostFiles = 1_000
const mostFaults = 20

export type LoadedDocument =
  | { readonly kind: 'loaded'; readonly bundle: ApiBundle; readonly files: readonly string[] }
  | { readonly kind: 'faults'; readonly messages: readonly string[] }

type Parsed =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'fault'; readonly message: string }

/** JSON first: the YAML parser takes fifty times as long for large documents. */
const parsed = (text: string): Parsed => {
  if (/^\s*\{/.test(text)) {
    try {
      return { kind: 'value', value: JSON.parse(text) }
    } catch {
      // YAML in braces, or a fault that the YAML parser finds with its line.
    }
  }
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    uniqueKeys: true,
  })
  const [error] = document.errors
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0])
    return { kind: 'fault', message: `${line}:${col} not YAML or JSON: ${error.message}` }
  }
  try {
    return { kind: 'value', value: document.toJS({ maxAliasCount: 10_000 }) }
  } catch (cause) {
    return {
      kind: 'fault',
      message: `1:1 not YAML: ${cause instanceof Error ? cause.message : String(cause)}`,
    }
  }
}

const positionIn = (text: string, path: readonly string[]): Position => {
  const lines = new LineCounter()
  return documentLocator(parseDocument(text, { lineCounter: lines, prettyErrors: false }), lines)(path, 'key')
}

const placed = ({ file, path, message }: DocumentFault, texts: ReadonlyMap<string, string>): string => {
  const { line, column } = positionIn(texts.get(file) ?? '', path)
  return `${file}:${line}:${column} ${message}`
}

type Files = {
  readonly texts: ReadonlyMap<string, string>
  readonly values: Readonly<Record<string, unknown>>
}

/** The document and the files below its folder that it refers to; or the reason, as a text, why that is not possible. */
const readFiles = async (folder: string, root: string): Promise<Files | string> => {
  const texts = new Map<string, string>()
  const values: Record<string, unknown> = {}
  const pending = new Set([root])
  let bytes = 0
  for (const name of pending) {
    const read = await readFile(join(folder, name)).catch((cause: unknown) => unreadableFile('file', cause))
    // A reference in an example is data; one that is needed is reported where it is used.
    if (typeof read === 'string' && name !== root) continue
    if (typeof read === 'string') return read
    const text = read.toString('utf8')
    if (pending.size > mostFiles) return `refers to more than ${mostFiles} files`
    bytes += text.length
    if (bytes > mostBytes) return `is larger than ${mostBytes} bytes`
    const reading = parsed(text)
    if (reading.kind === 'fault') return `${name}:${reading.message}`
    texts.set(name, text)
    values[name] = reading.value
    for (const other of namedFiles(reading.value, name)) pending.add(other)
  }
  return { texts, values }
}

/** Reads a document and the files below its folder that it refers to, and checks it. */
export const readApiDocument = async (file: string): Promise<LoadedDocument> => {
  const folder = dirname(file)
  const root = basename(file)
  const read = await readFiles(folder, root)
  if (typeof read === 'string') return { kind: 'faults', messages: [read] }
  const bundle: ApiBundle = { root, files: read.values }
  const result = loadDocument(bundle)
  if (result.kind === 'faults') {
    return {
      kind: 'faults',
      messages: result.faults.slice(0, mostFaults).map((fault) => placed(fault, read.texts)),
    }
  }
  return { kind: 'loaded', bundle, files: [...read.texts.keys()].map((name) => join(folder, name)) }
}

type DocumentsReading = {
  readonly value: unknown
  readonly faults: readonly UnplacedFault[]
  readonly files: readonly string[]
}

/** Replaces the paths of documents by their content, references included. `folder`: the one of the configuration file. */
export const readDocuments = async (value: unknown, folder: string): Promise<DocumentsReading> => {
  const faults: UnplacedFault[] = []
  const files: string[] = []
  let filled = value
  const services = valueAt(value, ['services'])
  for (const name of Object.keys(typeof services === 'object' && services !== null ? services : {})) {
    const path: Path = ['services', name, 'document']
    const document = valueAt(value, path)
    if (
      typeof document !== 'string' ||
      document === '' ||
      valueAt(value, ['services', name, 'contract']) !== 'openapi'
    )
      continue
    const reading = await readApiDocument(resolve(folder, document))
    if (reading.kind === 'faults') faults.push(...reading.messages.map((message) => faultAt(path, message)))
    else {
      files.push(...reading.files)
      filled = withValueAt(filled, path, bundleText(reading.bundle))
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
      return message === undefined ? [] : [faultAt(path, `${declared.operation}: ${message}`)]
    }),
  ]
}

type Rules = { readonly rules?: readonly object[] | undefined }
type Rule = { readonly operation?: string | undefined }

/** Rules may name operations of the document; the document itself was checked when it was read. */
export const documentFaults = (
  shape: Readonly<Record<string, { readonly cache: Rules; readonly resources?: readonly Rule[] }>>,
  services: readonly ServiceConfig[],
): UnplacedFault[] =>
  services.flatMap((service) => {
    if (service.contract !== 'openapi') return []
    const { operations } = service.document.contract
    const path = ['services', service.name]
    const unknown = (shape[service.name]?.cache.rules ?? []).flatMap((rule, index) => {
      const operation = 'operation' in rule ? rule.operation : undefined
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
    return [...unknown, ...durations, ...resourceFaults(service, shape[service.name]?.resources ?? [])]
  })
