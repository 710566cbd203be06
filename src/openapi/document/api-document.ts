import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { deserialize, serialize } from 'node:v8'
import { gunzipSync, gzipSync } from 'node:zlib'
import { parse } from 'yaml'
import type { OpenApiConfig } from '../../config/config.ts'
import { ServiceDocument } from '../../config/service-document.ts'
import { packageFile } from '../../package-file.ts'
import { type ApiBundle, listOf, member } from './bundle.ts'
import { type ApiContract, loadDocument } from './load-document.ts'
import { documentsCookie, locateOperations, type Operation, operationKey } from './operation.ts'

/** A document without faults, as threads and processes hand it to each other. */
export type ReadDocument = {
  /** Absolute path of its file; undefined for a document of the package. */
  readonly path: string | undefined
  /** Its name in the bundle. */
  readonly root: string
  /** The JSON of the bundle, compressed: it is rarely needed after the start, and has a tenth of its size. */
  readonly packed: Uint8Array
  /** Of the JSON of the bundle. */
  readonly hash: string
  readonly contract: ApiContract
}

/** What remains of a bundle after the start. */
export const readDocumentOf = (bundle: ApiBundle, contract: ApiContract, path?: string): ReadDocument => {
  const json = Buffer.from(JSON.stringify(bundle))
  const hash = createHash('sha256').update(json).digest('hex').slice(0, 16)
  return { path, root: bundle.root, packed: gzipSync(json, { level: 1 }), hash, contract }
}

/** The OpenAPI document of a service. Its JSON form is name and hash, so that configurations compare and show these. */
export class ApiDocument extends ServiceDocument {
  readonly #read: ReadDocument

  constructor(read: ReadDocument) {
    super()
    this.#read = read
  }

  /** For `from` in another process, which need not load the document again. */
  get data(): string {
    return serialize(this.#read).toString('base64')
  }

  static from(data: string): ApiDocument {
    return new ApiDocument(deserialize(Buffer.from(data, 'base64')) as ReadDocument)
  }

  get path(): string | undefined {
    return this.#read.path
  }

  get packed(): Uint8Array {
    return this.#read.packed
  }

  /** Parsed anew: kept, that of a large document would take ten times the memory of its text. */
  get bundle(): ApiBundle {
    return JSON.parse(gunzipSync(this.#read.packed).toString()) as ApiBundle
  }

  /** Those with a response of which the document says that it sets a cookie. */
  cookieOperations(): ReadonlySet<Operation> {
    const { bundle } = this
    const locations = locateOperations(bundle)
    return new Set(
      this.contract.operations.filter((operation) => {
        const located = locations.get(operationKey(operation))
        return located !== undefined && documentsCookie(bundle, located)
      }),
    )
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

  get contract(): ApiContract {
    return this.#read.contract
  }

  toJSON(): { readonly file: string; readonly hash: string } {
    return { file: this.#read.root, hash: this.#read.hash }
  }
}

/** By the setting that is filled in. */
const shipped = new Map<string, ApiDocument>()
const maxShipped = 8

/** The document of the plant store, a file of the package; the setting is filled in. */
export const plantsDocument = (limitParameter: string): ApiDocument => {
  const shippedDocument = shipped.get(limitParameter)
  if (shippedDocument !== undefined) return shippedDocument
  const root = 'plants.yaml'
  const text = readFileSync(packageFile(`contracts/${root}`), 'utf8')
  const value: unknown = parse(text.replaceAll('{limitParameter}', limitParameter))
  const bundle = { root, files: { [root]: value } }
  const reading = loadDocument(bundle)
  if (reading.kind === 'faults') throw new TypeError(`${root} has faults`)
  const document = new ApiDocument(readDocumentOf(bundle, reading.contract))
  if (shipped.size >= maxShipped) shipped.clear()
  shipped.set(limitParameter, document)
  return document
}

/** The document of a configured service: only this module reads documents. */
export const apiDocumentOf = ({ document }: Pick<OpenApiConfig, 'document'>): ApiDocument => {
  if (document instanceof ApiDocument) return document
  throw new TypeError('the document of a service was not read by its contract module')
}

/** The cache rules in the document of the plant store, in the form of a configuration. */
export const plantRules = (limitParameter: string) =>
  plantsDocument(limitParameter).contract.operations.flatMap(({ method, template, cache }) =>
    cache === undefined ? [] : [{ ...cache, match: `${method} ${template}` }],
  )
