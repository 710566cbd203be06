import { Readable } from 'node:stream'
import { type CacheRead, cacheKey } from '../cache/cache-read.ts'
import type { CachePolicy } from '../cache/decide-caching.ts'
import { GatewayError } from '../errors.ts'
import { overheadOfChunk, type Reservation } from '../http/bounds.ts'
import { withUncodedTags } from '../http/conditional/preconditions.ts'
import { acceptedForms, forwardedCodings } from '../http/content-coding.ts'
import { forwardableField, forwardableFields, isUnusualName, namedAway } from '../http/forwardable-fields.ts'
import { remembered } from '../http/memo.ts'
import { type GatewayResponse, type RequestFields, requestField } from '../http/message.ts'
import { requestTags } from '../service/tagger.ts'
import type { Matched, Ready } from './exchange.ts'

export type ForwardingFacts = {
  /** Pseudonym in Via, different for each process, so that a request that comes back is recognised (RFC 9110 §7.6.3). */
  readonly via: string
}

type Known = Pick<Matched, 'id' | 'client' | 'request' | 'service' | 'identity' | 'matching'>

const quoted = (address: string): string => (address.includes(':') ? `"[${address}]"` : address)

/** Fields that the gateway writes in place of the client's: Via, Forwarded (RFC 7239) and X-Forwarded-* from the connection and the configuration. */
const written: Readonly<Record<string, (known: Known, facts: ForwardingFacts) => string>> = {
  via: ({ request }, { via }) => {
    const before = requestField(request.fields, 'via')
    return before === undefined ? `1.1 ${via}` : `${before}, 1.1 ${via}`
  },
  forwarded: ({ client, service }) =>
    `for=${quoted(client.address)};proto=${client.protocol};host="${service.publicHost}"`,
  'x-forwarded-for': ({ client }) => client.address,
  'x-forwarded-proto': ({ client }) => client.protocol,
  'x-forwarded-host': ({ service }) => service.publicHost,
  'x-request-id': ({ id }) => id,
}

const writtenFields = Object.entries(written)

const declaredField = (
  { request: { fields } }: Known,
  name: string,
  withheld: ReadonlySet<string>,
): string | undefined =>
  withheld.has(name) || namedAway(fields).has(name) ? undefined : requestField(fields, name)

const headersOf = ({ matching }: Known): readonly string[] =>
  (matching.kind === 'found' && matching.endpoint.headers) || []

/** The name that many upstreams read as this one: `account-id` for `account_id`. */
const twinOf = (name: string): string => name.replaceAll(/[._]/g, '-')

/** The key of a stored response has only the fields that its own operation declares: others are not sent, nor is the twin of a claim. */
const declaredNames = (known: Known): ReadonlySet<string> => {
  const names = [...known.service.contract.declaredFields, ...headersOf(known).filter(isUnusualName)]
  return new Set(names.filter((name) => known.service.access?.claimFields.includes(twinOf(name)) !== true))
}

/** The response is keyed by the declared one. */
const twinsOf = (known: Known, declared: ReadonlySet<string>): readonly string[] => {
  const headers = headersOf(known)
  return [...declared].map(twinOf).filter((name) => !headers.includes(name))
}

/** With the fields that `access` keeps from the upstream: API keys, and what clients send in place of claims. */
const allWithheld = (
  known: Known,
  declared: ReadonlySet<string>,
  withheld: ReadonlySet<string>,
): ReadonlySet<string> => {
  const { access } = known.service
  return access === undefined && declared.size === 0
    ? withheld
    : new Set([...withheld, ...(access?.withheld ?? []), ...twinsOf(known, declared)])
}

/** The fields of a request to the upstream, as lines: the client's, and those that the gateway writes, claims among them. Throws loop_detected. */
export const sentFields = (known: Known, withheld: ReadonlySet<string>, facts: ForwardingFacts): string[] => {
  const { identity, request } = known
  const { fields } = request
  if (requestField(fields, 'via')?.includes(facts.via) === true) throw new GatewayError('loop_detected')
  const declared = declaredNames(known)
  const sent = forwardableFields(fields, allWithheld(known, declared, withheld))
  for (const name of declared) {
    const value = declaredField(known, name, withheld)
    if (value !== undefined) sent.push(name, value)
  }
  for (const [name, valueFor] of writtenFields) sent.push(name, valueFor(known, facts))
  if (identity !== undefined) for (const [name, value] of identity.fields) sent.push(name, value)
  return sent
}

/** The value with which `sentFields` sends one field, undefined when it does not; without making the others. */
const createSentField = (
  known: Known,
  withheld: ReadonlySet<string>,
  facts: ForwardingFacts,
): ((name: string) => string | undefined) => {
  const { fields } = known.request
  const declared = declaredNames(known)
  const unsent = { named: namedAway(fields), withheld: allWithheld(known, declared, withheld) }
  return (name) =>
    Object.hasOwn(written, name)
      ? written[name]?.(known, facts)
      : (known.identity?.fields.get(name) ??
        (declared.has(name)
          ? declaredField(known, name, unsent.withheld)
          : forwardableField(fields, name, unsent)))
}

async function* boundedPieces(content: Readable, mostBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of content as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > mostBytes) throw new GatewayError('content_too_large')
    yield chunk
  }
}

/** The content, broken off with content_too_large as soon as it exceeds the bound: for content without a length. Nothing is read ahead. */
export const boundedContent = (content: Readable, mostBytes: number): Readable =>
  Readable.from(boundedPieces(content, mostBytes), { objectMode: false, highWaterMark: 1 })

/** Reads a request's content whole, or throws content_too_large as soon as it is known to exceed the bound, `overloaded` when too much is held already. */
export const readContent = async (
  content: Buffer | Readable,
  mostBytes: number,
  signal: AbortSignal,
  reservation: Reservation,
): Promise<Buffer> => {
  if (Buffer.isBuffer(content)) {
    if (content.length > mostBytes) throw new GatewayError('content_too_large')
    return content
  }
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of content as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > mostBytes) throw new GatewayError('content_too_large')
      if (!reservation.reserve(chunk.length + overheadOfChunk)) {
        throw new GatewayError('overloaded', {
          detail: 'Too many request bodies are in flight.',
          retryAfterSeconds: 1,
          unsent: true,
        })
      }
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw new GatewayError(signal.aborted ? 'client_gone' : 'invalid_request', { cause: error })
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}

/** Is a read treated as a write? Through a service without routes only where one with routes has the same upstream. */
export const isActingRead = ({ service, sensitive }: Pick<Ready, 'service' | 'sensitive'>): boolean =>
  sensitive !== undefined &&
  service.contract.actsAsWrite(sensitive) &&
  [service, ...service.sharing()].some(({ contract }) => contract.hasRoutes)

/** The partition of the cache that an exchange reads from; `name` as in the key. */
export type ReadPartition = {
  readonly kind: CacheRead['partition']
  readonly name: string
  /** When the credential expires; absent for all others. */
  readonly endsAt?: number
}

const keyOf = ({ service, target, recalled, client }: Ready, partition: string): string => {
  const { host, name, publicRoot } = service
  // The upstream is sent the scheme: it may redirect one to the other.
  const scheme = (client.protocol === 'https') === publicRoot.startsWith('https:') ? '' : client.protocol
  return recalled?.kind === 'valid' && partition === 'public' && host === '' && scheme === ''
    ? recalled.publicKey
    : cacheKey({ service: name, target, dialect: '', partition, host, scheme })
}

export const publicPart: ReadPartition = { kind: 'public', name: 'public' }

/** The cache's view of an exchange. A class with lazy members: each hit makes one, and needs few of them. */
export class ExchangeRead implements CacheRead {
  readonly #exchange: Ready
  readonly #withheld: ReadonlySet<string>
  readonly #facts: ForwardingFacts
  #sentField: ((name: string) => string | undefined) | undefined
  readonly service: string
  readonly key: string
  readonly partition: CacheRead['partition']
  readonly method: 'GET' | 'HEAD'
  readonly fields: RequestFields
  readonly policy: CachePolicy
  readonly compresses: boolean

  constructor(
    exchange: Ready,
    partition: ReadPartition,
    withheld: ReadonlySet<string>,
    facts: ForwardingFacts,
  ) {
    this.#exchange = exchange
    this.#withheld = withheld
    this.#facts = facts
    this.service = exchange.service.name
    this.key = keyOf(exchange, partition.name)
    this.partition = partition.kind
    this.method = exchange.method === 'HEAD' ? 'HEAD' : 'GET'
    this.fields = exchange.request.fields
    // No report of a change says that a credential has lost a right.
    this.policy =
      partition.kind === 'public'
        ? exchange.policy
        : { ...exchange.policy, whileHeard: undefined, endsAt: partition.endsAt ?? Number.POSITIVE_INFINITY }
    this.compresses = exchange.service.compresses
  }

  /** Made for the first variant that needs it. */
  sentField(name: string): string | undefined {
    this.#sentField ??= createSentField(this.#exchange, this.#withheld, this.#facts)
    return this.#sentField(name)
  }

  get signal(): AbortSignal {
    return this.#exchange.request.signal
  }

  get client(): string {
    return this.#exchange.client.address
  }

  get contentId(): string {
    return this.#exchange.service.contentId()
  }

  isOutdated(): boolean {
    const { service, matching } = this.#exchange
    return !service.isCurrent() || (matching.kind === 'found' && !service.contract.hasRow(matching.row))
  }

  isReadable(response: GatewayResponse & { readonly content: Buffer }): boolean {
    const { service, matching } = this.#exchange
    return matching.kind !== 'found' || service.contract.tagger.isReadable(response)
  }

  tags(response: GatewayResponse & { readonly content: Buffer }): readonly string[] {
    const { service, matching, sendsUndeclared } = this.#exchange
    const found = matching.kind === 'found' ? matching : undefined
    const own = service.contract.tagger.storedTags(found, this.#exchange.arguments, response)
    return requestTags(service.contract.tagger, own, this.partition === 'public', sendsUndeclared)
  }
}

/** `Accept-Encoding` for a response that the gateway reads or rewrites. */
export const uncoded = 'identity'

const passed = remembered(forwardedCodings, 64)

/** Codings that a stored response is decoded from, once for all clients. */
const decodable = ['br', 'gzip'] as const

const stored = remembered((value) => {
  const { codings } = acceptedForms(value, decodable)
  return codings.length === 0 ? uncoded : codings.join(', ')
}, 64)

const acceptedBy = ({ request, service }: Ready): string | undefined =>
  // Names and URLs are translated in uncoded contents only.
  service.translation === undefined ? requestField(request.fields, 'accept-encoding') : undefined

/** `Accept-Encoding` for a response to this client alone, as the upstream sends it. */
export const codingsToPass = (exchange: Ready): string => {
  const accepted = acceptedBy(exchange)
  return accepted === undefined ? uncoded : passed(accepted)
}

/**
 * `Accept-Encoding` for a response that may be stored. The client accepts what is asked for: it gets the response unchanged where
 * that is not stored. Parts and lengths are those of the uncoded form.
 */
export const codingsToStore = (exchange: Ready, added: Readonly<Record<string, string>>): string => {
  const { method, request } = exchange
  const isPartial = request.fields['range'] !== undefined || added['range'] !== undefined
  const accepted = method === 'HEAD' || isPartial ? undefined : acceptedBy(exchange)
  return accepted === undefined ? uncoded : stored(accepted)
}

/** Request fields that `ownConditions` replaces. */
export const tagConditions: ReadonlySet<string> = new Set(['if-match', 'if-none-match'])

export const hasTagCondition = (fields: RequestFields): boolean =>
  fields['if-none-match'] !== undefined || fields['if-match'] !== undefined

/** Entity tags of content codings are made by the gateway: the upstream cannot compare them, so its own tags are added. */
export const ownConditions = (fields: RequestFields): Readonly<Record<string, string>> => {
  const match = requestField(fields, 'if-match')
  const noneMatch = requestField(fields, 'if-none-match')
  return {
    ...(match === undefined ? {} : { 'if-match': withUncodedTags(match) }),
    ...(noneMatch === undefined ? {} : { 'if-none-match': withUncodedTags(noneMatch) }),
  }
}
