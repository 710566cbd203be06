import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { type ApiBundle, listOf, member } from '../contracts/openapi/bundle.ts'
import { type ApiContract, type DocumentReading, loadDocument } from '../contracts/openapi/load-document.ts'
import { packageFile } from '../package-file.ts'

/** The text that stands for a loaded document in a configuration: processes of one gateway hand it to each other. */
export const bundleText = (bundle: ApiBundle): string => JSON.stringify(bundle)

/** The OpenAPI document of a service. Its JSON form is name and hash, so that configurations compare and show these. */
export class ApiDocument {
  readonly #text: string
  #reading: DocumentReading | undefined
  readonly #hash: string

  constructor(text: string) {
    this.#text = text
    this.#hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  }

  /** The document with its files, as one text. */
  get text(): string {
    return this.#text
  }

  /** Parsed anew: kept, that of a large document would take ten times the memory of its text. */
  get bundle(): ApiBundle {
    return JSON.parse(this.#text) as ApiBundle
  }

  get #file(): string {
    const [, name] = /^\{"root":("(?:[^"\\]|\\.)*")/.exec(this.#text) ?? []
    return name === undefined ? this.bundle.root : (JSON.parse(name) as string)
  }

  get title(): string {
    const { root, files } = this.bundle
    return String(member(member(files[root], 'info'), 'title'))
  }

  /** The first of `servers`, with the defaults of its variables; undefined when there is none. */
  get server(): string | undefined {
    const { root, files } = this.bundle
    const [server] = listOf(member(files[root], 'servers'))
    const url = member(server, 'url')
    if (typeof url !== 'string') return undefined
    return url.replaceAll(/\{([^{}]*)\}/g, (whole, name: string) => {
      const value = member(member(member(server, 'variables'), name), 'default')
      return typeof value === 'string' ? value : whole
    })
  }

  get reading(): DocumentReading {
    this.#reading ??= loadDocument(this.bundle)
    return this.#reading
  }

  /** Of a document without faults, which a checked configuration has. */
  get contract(): ApiContract {
    const { reading } = this
    if (reading.kind === 'faults') throw new TypeError('the document has faults')
    return reading.contract
  }

  toJSON(): { readonly file: string; readonly hash: string } {
    return { file: this.#file, hash: this.#hash }
  }
}

/** By the setting that is filled in. */
const shipped = new Map<string, ApiDocument>()
const mostShipped = 8

/** The document of the plant store, a file of the package; the setting is filled in. */
export const plantsDocument = (limitParameter: string): ApiDocument => {
  const known = shipped.get(limitParameter)
  if (known !== undefined) return known
  const root = 'plants.yaml'
  const text = readFileSync(packageFile(`contracts/${root}`), 'utf8')
  const value: unknown = parse(text.replaceAll('{limitParameter}', limitParameter))
  const document = new ApiDocument(bundleText({ root, files: { [root]: value } }))
  if (shipped.size >= mostShipped) shipped.clear()
  shipped.set(limitParameter, document)
  return document
}
