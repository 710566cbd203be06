/** An operation of a document, as far as settings concern it. */
type DocumentOperation = {
  readonly method: string
  readonly template: string
  readonly operationId: string
  readonly parameters: readonly { readonly required: boolean }[]
  /** Empty: it needs no credential. */
  readonly security: readonly unknown[]
  /** Its cache rule in the document. */
  readonly cache: { readonly ttl: string } | undefined
}

/** The document of a service, read by its contract module. Its JSON form is what configurations compare and show. */
export abstract class ServiceDocument {
  abstract readonly contract: { readonly operations: readonly DocumentOperation[] }
  /** For `documentFrom` in another process, which need not read the document again. */
  abstract readonly data: string
  abstract toJSON(): unknown
}

export type DocumentReading =
  | { readonly kind: 'loaded'; readonly document: ServiceDocument; readonly files: readonly string[] }
  | { readonly kind: 'faults'; readonly messages: readonly string[] }

/** The rules of a plant store that has none of its own. */
export type PlantRules = (limitParameter: string) => readonly (object & { readonly match: string })[]
