import { hash } from 'node:crypto'
import {
  type DefinitionNode,
  type DocumentNode,
  Kind,
  Lexer,
  type OperationTypeNode,
  parse,
  print,
  Source,
  stripIgnoredCharacters,
  TokenKind,
} from 'graphql'
import { LRUCache } from 'lru-cache'
import { type DocumentLimits, excessOf, type RefusedDocument, refusedDocument } from './limits.ts'

export type Operation = {
  readonly type: `${OperationTypeNode}`
  /** '' for one without a name. */
  readonly name: string
  /** Names of the variables that it declares. */
  readonly variables: ReadonlySet<string>
}

/** A document that can be executed. */
export type ParsedDocument = {
  readonly kind: 'parsed'
  /** Printed: without comments and spaces, fragments by name. */
  readonly text: string
  readonly operations: readonly Operation[]
  /** A name that stands for two operations or fragments: servers refuse the document, or choose. */
  readonly isAmbiguous: boolean
}

export type DocumentReading = ParsedDocument | RefusedDocument | { readonly kind: 'unparsable' }

const unparsable = { kind: 'unparsable' } as const

/** A block string is one token, and costs the parser a step for each of its lines. */
const hasTooManyLines = (text: string, maxLines: number): boolean =>
  text.split(/\r\n?|\n/, maxLines + 1).length > maxLines

/** Counted again only for a text that the parser has refused. */
const hasTooManyTokens = (text: string, maxTokens: number): boolean => {
  const lexer = new Lexer(new Source(text))
  try {
    for (let count = 0; lexer.advance().kind !== TokenKind.EOF; count += 1)
      if (count === maxTokens) return true
  } catch {
    // A character outside the grammar.
  }
  return false
}

const parsedOrNot = (text: string, maxTokens: number): DocumentNode | undefined => {
  try {
    return parse(text, { noLocation: true, maxTokens })
  } catch {
    return undefined
  }
}

const nameOf = (definition: DefinitionNode): string =>
  'name' in definition && definition.name !== undefined ? `${definition.kind} ${definition.name.value}` : ''

const isExecutable = ({ kind }: DefinitionNode): boolean =>
  kind === Kind.OPERATION_DEFINITION || kind === Kind.FRAGMENT_DEFINITION

/** Operations in their order, then fragments by name: the order of fragments has no meaning (GraphQL §2.8). */
const sortedDefinitions = (definitions: readonly DefinitionNode[]): readonly DefinitionNode[] => {
  const fragments = definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION)
  const byName = (one: DefinitionNode, other: DefinitionNode): number =>
    nameOf(one) < nameOf(other) ? -1 : 1
  return [...definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION), ...fragments.sort(byName)]
}

const operationsOf = (definitions: readonly DefinitionNode[]): readonly Operation[] =>
  definitions.flatMap((definition) =>
    definition.kind !== Kind.OPERATION_DEFINITION
      ? []
      : [
          {
            type: definition.operation,
            name: definition.name?.value ?? '',
            variables: new Set(definition.variableDefinitions?.map(({ variable }) => variable.name.value)),
          },
        ],
  )

/** Reads a document with the parser of the reference implementation, within the limits. */
export const readDocument = (text: string, limits: DocumentLimits): DocumentReading => {
  const { maxBytes, maxTokens } = limits
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes)
    return refusedDocument('document_too_large', `A document may have ${maxBytes} bytes.`)
  const tooMany = (): RefusedDocument =>
    refusedDocument('too_many_tokens', `A document may have ${maxTokens} tokens, and as many lines.`)
  if (hasTooManyLines(text, maxTokens)) return tooMany()
  const document = parsedOrNot(text, maxTokens)
  if (document === undefined) return hasTooManyTokens(text, maxTokens) ? tooMany() : unparsable
  // Before the document is printed: the printer indents, which costs the square of the depth.
  const excess = excessOf(document, limits)
  if (excess !== undefined) return excess
  const { definitions } = document
  const operations = operationsOf(definitions)
  if (operations.length === 0 || !definitions.every(isExecutable)) return unparsable
  const names = definitions.map(nameOf).filter((name) => name !== '')
  const anonymous = operations.filter(({ name }) => name === '').length
  return {
    kind: 'parsed',
    text: sortedDefinitions(definitions)
      .map((definition) => stripIgnoredCharacters(print(definition)))
      .join(''),
    operations,
    isAmbiguous: new Set(names).size < names.length || (anonymous > 0 && operations.length > 1),
  }
}

/** Bytes of memory for one entry beside its text. */
const overhead = 512

/** A memory of at most so many bytes, whatever clients invent. */
export const createByteMemo = <Value extends object>(maxBytes: number) =>
  new LRUCache<string, { readonly value: Value; readonly bytes: number }>({
    maxSize: maxBytes,
    sizeCalculation: ({ bytes }, key) => bytes + 2 * key.length + overhead,
  })

const documentMemoBytes = 8 * 1024 * 1024

/** Reads documents; each text is parsed once while it is remembered. */
export class Documents {
  readonly #limits: DocumentLimits
  readonly #knowsHashes: boolean
  readonly #byText = createByteMemo<DocumentReading>(documentMemoBytes)
  /** By the SHA-256 of the text, as automatic persisted queries name it. */
  readonly #byHash = createByteMemo<DocumentReading>(documentMemoBytes)

  constructor({ persisted, ...limits }: DocumentLimits & { readonly persisted: boolean | 'ask' }) {
    this.#limits = limits
    this.#knowsHashes = persisted !== false
  }

  read(text: string): DocumentReading {
    const memoized = this.#byText.get(text)?.value
    if (memoized !== undefined) return memoized
    const reading = readDocument(text, this.#limits)
    // Texts over the limit are not kept.
    if (text.length <= this.#limits.maxBytes)
      this.#byText.set(text, { value: reading, bytes: sizeOf(reading) })
    return reading
  }

  /** The document of which a client has sent both text and hash before. */
  withHash(sha256: string): DocumentReading | undefined {
    return this.#knowsHashes ? this.#byHash.get(sha256)?.value : undefined
  }

  /** Keeps the hash of a document, if it is one. Content decides: nobody can give a hash another document, nor a document its hash. */
  nameByHash(text: string, document: DocumentReading, sha256: string): boolean {
    if (hash('sha256', text, 'hex') !== sha256) return false
    if (!this.#byHash.has(sha256)) this.#byHash.set(sha256, { value: document, bytes: sizeOf(document) })
    return true
  }
}

const sizeOf = (reading: DocumentReading): number => (reading.kind === 'parsed' ? 2 * reading.text.length : 0)
