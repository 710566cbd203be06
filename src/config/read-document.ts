import { readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { load } from 'js-yaml'
import { LineCounter, parseDocument } from 'yaml'
import { nestingDepth } from '../http/json-text.ts'
import { type ApiBundle, namedFiles } from '../openapi/document/bundle.ts'
import { loadDocument } from '../openapi/document/load-document.ts'
import type { DocumentFault } from '../openapi/document/read-operation.ts'
import { threadEntry } from '../package-file.ts'
import { type ApiDocument, type ReadDocument, readDocumentOf } from './api-document.ts'
import { documentLocator, unreadableFile } from './load/source.ts'

const mostBytes = 64 * 1024 * 1024
const mostFiles = 1_000
const mostFaults = 20

export type LoadedDocument =
  | { readonly kind: 'loaded'; readonly document: ReadDocument; readonly files: readonly string[] }
  | { readonly kind: 'faults'; readonly messages: readonly string[] }

type Parsed =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'fault'; readonly message: string }

/** From this number of characters on the time counts: `yaml` takes three seconds for ten million, js-yaml a quarter of that. */
const longText = 256 * 1024

/**
 * Undefined for a text that `yaml` must read: it finds the line of a fault, merges, and limits the size of expanded aliases. Both have
 * the core schema of YAML 1.2 and refuse repeated keys.
 */
const readLongYaml = (text: string): unknown => {
  if (text.includes('<<:')) return undefined
  try {
    return load(text, { maxAliases: 0, maxDepth: 200 })
  } catch {
    return undefined
  }
}

/** Objects and lists inside of one another: code that follows them takes a part of the stack for each. */
const mostLevels = 1_000
const tooDeep: Parsed = { kind: 'fault', message: `1:1 is nested deeper than ${mostLevels} levels` }

/** JSON first: the YAML parser takes fifty times as long for large documents. */
const parsed = (text: string): Parsed => {
  if (/^\s*\{/.test(text)) {
    try {
      const value: unknown = JSON.parse(text)
      return nestingDepth(text) > mostLevels ? tooDeep : { kind: 'value', value }
    } catch {
      // YAML in braces, or a fault that the YAML parser finds with its line.
    }
  }
  const value = text.length > longText ? readLongYaml(text) : undefined
  if (value !== undefined) return { kind: 'value', value }
  // The YAML parser, too, calls itself for each level.
  if (nestingDepth(text) > mostLevels) return tooDeep
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

/** Writes faults with their positions. A text is parsed for positions on the first use only: that takes seconds for large documents. */
const createPlacing = (texts: ReadonlyMap<string, string>): ((fault: DocumentFault) => string) => {
  const locators = new Map<string, ReturnType<typeof documentLocator>>()
  const locatorOf = (file: string): ReturnType<typeof documentLocator> => {
    const lines = new LineCounter()
    const text = texts.get(file) ?? ''
    return documentLocator(parseDocument(text, { lineCounter: lines, prettyErrors: false }), lines)
  }
  const positionOf = ({ file, path }: DocumentFault['first'] & object): string => {
    const locate = locators.get(file) ?? locatorOf(file)
    locators.set(file, locate)
    const { line, column } = locate(path, 'key')
    return `${file}:${line}:${column}`
  }
  return ({ message, first, ...fault }) =>
    `${positionOf(fault)} ${message}${first === undefined ? '' : `; the first is at ${positionOf(first)}`}`
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
    const content = await readFile(join(folder, name)).catch((cause: unknown) =>
      unreadableFile('file', cause),
    )
    // A reference in an example is data; one that is needed is reported where it is used.
    if (typeof content === 'string' && name !== root) continue
    if (typeof content === 'string') return `${root}: ${content}`
    const text = content.toString('utf8')
    if (pending.size > mostFiles) return `${root}: refers to more than ${mostFiles} files`
    bytes += text.length
    if (bytes > mostBytes) return `${root}: is larger than ${mostBytes} bytes`
    const reading = parsed(text)
    if (reading.kind === 'fault') return `${name}:${reading.message}`
    texts.set(name, text)
    values[name] = reading.value
    for (const file of namedFiles(reading.value, name)) pending.add(file)
  }
  return { texts, values }
}

/** Reads a document and the files below its folder that it refers to, and checks it; all of it in this thread. */
export const loadApiDocument = async (file: string): Promise<LoadedDocument> => {
  const folder = dirname(file)
  const root = basename(file)
  const files = await readFiles(folder, root)
  if (typeof files === 'string') return { kind: 'faults', messages: [files] }
  const bundle: ApiBundle = { root, files: files.values }
  const result = loadDocument(bundle)
  if (result.kind === 'faults') {
    return {
      kind: 'faults',
      messages: result.faults.slice(0, mostFaults).map(createPlacing(files.texts)),
    }
  }
  const document = readDocumentOf(bundle, result.contract, file)
  return { kind: 'loaded', document, files: [...files.texts.keys()].map((name) => join(folder, name)) }
}

/** What of a document is accepted but not checked, with the lines where it is in the files as they are now. */
export const placedNotes = async ({ path, contract }: ApiDocument): Promise<readonly string[]> => {
  const { unchecked } = contract
  if (unchecked.length === 0) return []
  const texts = new Map<string, string>()
  const names = unchecked.flatMap(({ file, first }) => [file, first?.file ?? file])
  for (const name of new Set(names)) {
    const text = path === undefined ? '' : await readFile(join(dirname(path), name), 'utf8').catch(() => '')
    texts.set(name, text)
  }
  return unchecked.map(createPlacing(texts))
}

/** Of a document that is read in a separate thread: the memory that this takes ends with the thread. */
const largeBytes = 1024 * 1024

const loadInThread = (file: string): Promise<LoadedDocument> =>
  new Promise((resolve) => {
    const { entry, eval: isScript } = threadEntry('load-document')
    const thread = new Worker(entry, { workerData: file, eval: isScript })
    let loaded: LoadedDocument = {
      kind: 'faults',
      messages: ['the thread that reads the document has ended'],
    }
    thread.on('message', (message: LoadedDocument) => {
      loaded = message
    })
    // Such as too little memory.
    thread.on('error', (error) => {
      loaded = { kind: 'faults', messages: [`cannot be read: ${error.message}`] }
    })
    thread.on('exit', () => resolve(loaded))
  })

export const readApiDocument = async (file: string): Promise<LoadedDocument> => {
  const size = await stat(file).then(
    ({ size }) => size,
    () => 0,
  )
  return size > largeBytes ? loadInThread(file) : loadApiDocument(file)
}
