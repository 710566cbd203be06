import { readFile, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { load } from 'js-yaml'
import { LineCounter, parseDocument } from 'yaml'
import { unreadableFile } from '../../config/fault.ts'
import { documentLocator } from '../../config/yaml-positions.ts'
import { inTurns, type Pieces } from '../../http/bodies/turns.ts'
import { nestingDepth } from '../../http/json-text.ts'
import { threadEntry } from '../../package-file.ts'
import { type ApiDocument, type ReadDocument, readDocumentOf } from './api-document.ts'
import { type ApiBundle, namedFiles } from './bundle.ts'
import { type ApiContract, loadDocument, rowsOf } from './load-document.ts'

type Operation = ApiContract['operations'][number]
type Definition =
  ApiContract['definitions'] extends ReadonlyMap<infer Name, infer Schema> ? readonly [Name, Schema] : never
type DocumentFault = ApiContract['unchecked'][number]

const maxBytes = 64 * 1024 * 1024
/** What a file counts at least, a missing one too: it is opened, and its name is held. */
const bytesOfFile = 1024
const maxFaults = 20

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
const maxLevels = 1_000
const tooDeep: Parsed = { kind: 'fault', message: `1:1 is nested deeper than ${maxLevels} levels` }

/** JSON first: the YAML parser takes fifty times as long for large documents. */
const parsed = (text: string): Parsed => {
  if (/^\s*\{/.test(text)) {
    try {
      const value: unknown = JSON.parse(text)
      return nestingDepth(text) > maxLevels ? tooDeep : { kind: 'value', value }
    } catch {
      // YAML in braces, or a fault that the YAML parser finds with its line.
    }
  }
  const value = text.length > longText ? readLongYaml(text) : undefined
  if (value !== undefined) return { kind: 'value', value }
  // The YAML parser, too, calls itself for each level.
  if (nestingDepth(text) > maxLevels) return tooDeep
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
    bytes += Math.max(bytesOfFile, content.length)
    if (bytes > maxBytes) return `${root}: is larger than ${maxBytes} bytes, with the files that it refers to`
    // A reference in an example is data; one that is needed is reported where it is used.
    if (typeof content === 'string' && name !== root) continue
    if (typeof content === 'string') return `${root}: ${content}`
    const text = content.toString('utf8')
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
      messages: result.faults.slice(0, maxFaults).map(createPlacing(files.texts)),
    }
  }
  const document = readDocumentOf(bundle, result.contract, file)
  return { kind: 'loaded', document, files: [...files.texts.keys()].map((name) => join(folder, name)) }
}

/** What of a document is accepted but not checked, with the lines where it is in the files as they are now. */
export const placedHints = async ({ path, contract }: ApiDocument): Promise<readonly string[]> => {
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

/**
 * A longer document, and one of several files, is read in a separate thread: a reload holds no requests, and the memory that this takes
 * ends with the thread.
 */
const shortBytes = 64 * 1024

/** A reference to another file. */
const namesFile = /\$ref["']?\s*:\s*["']?[^#"'\s]/

const isShort = async (file: string): Promise<boolean> => {
  const { size } = await stat(file)
  return size <= shortBytes && !namesFile.test(await readFile(file, 'utf8'))
}

/** What a thread sends of a document, one message after the other: read at once, that of 3,000 paths holds the event loop too long. */
type DocumentPart =
  | LoadedDocument
  | { readonly kind: 'operations'; readonly operations: readonly Operation[] }
  | { readonly kind: 'definitions'; readonly definitions: readonly Definition[] }

const partsOfMessage = 64

const slicesOf = <Item>(items: readonly Item[]): readonly (readonly Item[])[] =>
  Array.from({ length: Math.ceil(items.length / partsOfMessage) }, (_, at) =>
    items.slice(at * partsOfMessage, (at + 1) * partsOfMessage),
  )

/** In the thread that has read the document. */
export const sendDocument = (loaded: LoadedDocument, port: MessagePort): void => {
  const send = (part: DocumentPart): void => port.postMessage(part)
  if (loaded.kind === 'faults') {
    send(loaded)
    return
  }
  const { document, files } = loaded
  const { contract } = document
  for (const operations of slicesOf(contract.operations)) send({ kind: 'operations', operations })
  for (const definitions of slicesOf([...contract.definitions])) send({ kind: 'definitions', definitions })
  const rest = { ...contract, rows: [], operations: [], definitions: new Map() }
  send({ kind: 'loaded', files, document: { ...document, contract: rest } })
}

function* receiveDocument(port: MessagePort): Pieces<LoadedDocument | undefined> {
  const operations: Operation[] = []
  const definitions = new Map<Definition[0], Definition[1]>()
  for (;;) {
    const part = receiveMessageOnPort(port)?.message as DocumentPart | undefined
    switch (part?.kind) {
      case undefined:
      case 'faults':
        return part
      case 'operations':
        operations.push(...part.operations)
        break
      case 'definitions':
        for (const [name, schema] of part.definitions) definitions.set(name, schema)
        break
      case 'loaded': {
        yield
        const { document, files } = part
        const rows = yield* rowsOf(operations)
        const contract = { ...document.contract, rows, operations, definitions }
        return { kind: 'loaded', files, document: { ...document, contract } }
      }
    }
    yield
  }
}

const loadInThread = async (file: string): Promise<LoadedDocument> => {
  const { entry, eval: isScript } = threadEntry('load-document')
  const { port1, port2 } = new MessageChannel()
  const thread = new Worker(entry, {
    workerData: { file, port: port2 },
    transferList: [port2],
    eval: isScript,
  })
  // Such as too little memory.
  const failure = await new Promise<string | undefined>((resolve) => {
    thread.on('error', (error) => resolve(`cannot be read: ${error.message}`))
    thread.on('exit', () => resolve(undefined))
  })
  const loaded = failure === undefined ? await inTurns(receiveDocument(port1), '') : undefined
  port1.close()
  const lost = failure ?? 'the thread that reads the document has ended'
  return loaded ?? { kind: 'faults', messages: [lost] }
}

export const readApiDocument = async (file: string): Promise<LoadedDocument> =>
  (await isShort(file).catch(() => true)) ? loadApiDocument(file) : loadInThread(file)
