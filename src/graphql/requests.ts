import type { CachePolicy } from '../cache/decide-caching.ts'
import type { GraphqlConfig } from '../config/config.ts'
import { requestHeader } from '../http/headers/header-lines.ts'
import { isGetOrHead, isKeyedByContent } from '../http/methods.ts'
import type { ContentMeaning, Contract, Validation, ValidationInput } from '../service/contract.ts'
import { createByteMemo, Documents } from './document.ts'
import { limitRefusal, mutationByGet, persistedQueryNotFound } from './errors.ts'
import { refusedDocument } from './limits.ts'
import { bodyOf, type CanonicalQuery, keyOf, type Meaning, meaningOf, urlQueryOf } from './meaning.ts'
import { OperationNames } from './operation-names.ts'
import { type RequestReading, readGraphqlBody, readItem, readQuery } from './request.ts'

/** Where the parameters are, and whether its method may write (GraphQL over HTTP §6, RFC 10008). */
type Place = 'url' | 'safe-body' | 'body'

const placeOf = (method: string): Place => {
  if (isGetOrHead(method)) return 'url'
  return isKeyedByContent(method) ? 'safe-body' : 'body'
}

type Sent = {
  readonly place: Place
  /** As received. */
  readonly query: string
  /** Its parameters that are none of GraphQL. */
  readonly rest: string
  readonly accept: string
}

const noArguments: Readonly<Record<string, unknown>> = Object.freeze({})

/** Longer requests are read again each time. */
const maxMemoizedLength = 256 * 1024
const memoBytes = 8 * 1024 * 1024

/** The path by which a rule names an operation, such as `query Me`. No operation has the name of those without one. */
const pathOf = (operation: string): string => `/${operation === '' ? '-' : operation}`

const isHashAlone = (reading: RequestReading): boolean =>
  reading.kind === 'request' && reading.document === undefined && reading.sha256 !== undefined

/** What requests to one endpoint mean. */
export class Requests {
  readonly names: OperationNames
  readonly #config: GraphqlConfig['graphql']
  readonly #jsonDepth: number
  readonly #policyFor: Contract['policyFor']
  readonly #documents: Documents
  /** Of reads, by their octets: a hit parses nothing. */
  readonly #memo = createByteMemo<Validation>(memoBytes)

  /** `named`: labels of operations that the configuration names. */
  constructor(
    config: GraphqlConfig['graphql'],
    jsonDepth: number,
    policyFor: Contract['policyFor'],
    named: readonly string[] = [],
  ) {
    this.names = new OperationNames(named)
    this.#config = config
    this.#jsonDepth = jsonDepth
    this.#policyFor = policyFor
    this.#documents = new Documents(config)
  }

  validate(input: ValidationInput): Validation {
    const { method, query, content, headers } = input
    const place = placeOf(method)
    const accept = (headers && requestHeader(headers, 'accept')) ?? ''
    if (query.length + (content?.length ?? 0) > maxMemoizedLength) return this.#read(input, place, accept)
    const text = `${place} ${accept}\n${query}\n${content?.toString('latin1') ?? ''}`
    const memoized = this.#memo.get(text)?.value
    if (memoized !== undefined) return memoized
    const validation = this.#read(input, place, accept)
    const isRead = validation.kind === 'valid' && validation.meaning?.effect === 'read'
    if (isRead) this.#memo.set(text, { value: validation, bytes: 2 * text.length })
    return validation
  }

  #read({ query, content }: ValidationInput, place: Place, accept: string): Validation {
    const { reading, rest } = readQuery(query, this.#jsonDepth)
    const sent = { place, query, rest, accept }
    if (place === 'url') return this.#validation(sent, meaningOf(reading, this.#documents))
    // Of two places with parameters servers take one or the other.
    if (content === undefined || reading.kind !== 'empty') return this.#validation(sent, undetermined)
    const body = readGraphqlBody(content, this.#jsonDepth)
    return body.kind === 'batch'
      ? this.#batchValidation(sent, body.items.map(readItem))
      : this.#validation(sent, meaningOf(body, this.#documents))
  }

  #validation(sent: Sent, meaning: Meaning): Validation {
    switch (meaning.kind) {
      case 'query':
        return this.#queryValidation(sent, meaning)
      case 'mutation':
        return sent.place === 'body'
          ? this.#forwarded(sent, 'write', this.names.labelOf(meaning.kind, meaning.operation))
          : mutationByGet
      case 'subscription':
        return this.#forwarded(sent, 'pass', this.names.labelOf(meaning.kind, meaning.operation))
      case 'undetermined':
        return this.#forwarded(sent, sent.place === 'body' && meaning.mayWrite ? 'write' : 'pass', 'unknown')
      case 'unknown-hash':
        return this.#config.persisted === 'ask'
          ? persistedQueryNotFound()
          : this.#validation(sent, undetermined)
      case 'refused':
        return limitRefusal(meaning)
    }
  }

  #queryValidation(sent: Sent, query: CanonicalQuery): Validation {
    const { place, rest, accept } = sent
    const isInUrl = place === 'url'
    const isCanonical = !query.isSentAsReceived
    return {
      kind: 'valid',
      query: isInUrl && isCanonical ? urlQueryOf(query, rest) : sent.query,
      arguments: noArguments,
      ...(isCanonical && !isInUrl ? { keyedContent: bodyOf(query) } : {}),
      meaning: {
        effect: 'read',
        policy: this.#policyOf(query.operation),
        key: keyOf(query, accept),
        keyedQuery: rest,
        operation: this.names.labelOf('query', query.operation),
      },
    }
  }

  #forwarded({ query, rest }: Sent, effect: ContentMeaning['effect'], operation: string): Validation {
    const policy = { ...this.#policyOf(''), rule: undefined }
    return {
      kind: 'valid',
      query,
      arguments: noArguments,
      meaning: { effect, policy, key: '', keyedQuery: rest, operation },
    }
  }

  /** A list of queries is as many reads; a list with anything else is forwarded whole. */
  #batchValidation(sent: Sent, items: readonly RequestReading[]): Validation {
    const { batch } = this.#config
    if (items.length > batch)
      return limitRefusal(refusedDocument('batch_too_long', `A batch may have ${batch} operations.`))
    const meanings = items.map((item) => meaningOf(item, this.#documents))
    const isAnyUnknown = meanings.some(({ kind }) => kind === 'unknown-hash')
    if (this.#config.persisted === 'ask' && isAnyUnknown && items.every(isHashAlone))
      return persistedQueryNotFound(items.length)
    const refused = meanings.find((meaning) => meaning.kind === 'refused')
    if (refused?.kind === 'refused') return limitRefusal(refused)
    const queries = meanings.filter((meaning) => meaning.kind === 'query' && !meaning.isSentAsReceived)
    const [first] = queries
    if (first?.kind === 'query' && queries.length === meanings.length)
      return {
        kind: 'valid',
        query: sent.query,
        arguments: noArguments,
        meaning: {
          effect: 'read',
          policy: this.#policyOf(first.operation),
          key: '',
          keyedQuery: sent.rest,
          operation: 'batch',
          parts: queries.flatMap((query) => (query.kind === 'query' ? [bodyOf(query)] : [])),
        },
      }
    if (sent.place === 'body') return this.#forwarded(sent, 'write', 'batch')
    return meanings.some(({ kind }) => kind === 'mutation')
      ? mutationByGet
      : this.#forwarded(sent, 'pass', 'batch')
  }

  #policyOf(operation: string): CachePolicy {
    return this.#policyFor('query', pathOf(operation))
  }
}

const undetermined: Meaning = { kind: 'undetermined', mayWrite: true }
