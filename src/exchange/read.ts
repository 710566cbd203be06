import { hash } from 'node:crypto'
import { type CacheRead, cacheKey } from '../cache/cache-read.ts'
import type { CachePolicy } from '../cache/decide-caching.ts'
import { conditionalFields } from '../http/conditional/preconditions.ts'
import { withTraces } from '../http/credential-fields.ts'
import {
  type Answer,
  type GatewayResponse,
  type RequestFields,
  requestField,
  whenKnown,
} from '../http/message.ts'
import { isHead, isKeyedByContent, isPost } from '../http/methods.ts'
import type { AnyOrigin } from '../service/announced.ts'
import { requestTags } from '../service/contract.ts'
import type { Decision } from '../service/decide.ts'
import type { Outgoing, Ready } from './exchange.ts'
import { permitted, plainOrigin } from './finish.ts'
import { codingsToStore, createSentField } from './forward.ts'
import type { CacheContext, ForwardingFacts } from './ports.ts'

/** The partition of the cache that an exchange reads from; `name` as in the key. */
export type ReadPartition = {
  readonly kind: CacheRead['partition']
  readonly name: string
  /** The key has a field that the contract does not declare. */
  readonly hasUndeclared?: boolean
  /** When the credential expires; absent for all others. */
  readonly endsAt?: number
}

const keyOf = ({ service, target, recalled, client }: Ready, partition: string): string => {
  const { name } = service
  const { host, publicRoot } = service.address
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
  readonly #isForAll: boolean
  readonly #sendsUndeclared: boolean
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
    this.#isForAll = partition.name === publicPart.name
    this.#sendsUndeclared = exchange.sendsUndeclared || partition.hasUndeclared === true
    this.method = isHead(exchange.method) ? 'HEAD' : 'GET'
    this.fields = exchange.request.fields
    // No report of a change says that a credential has lost a right.
    this.policy =
      partition.kind === 'public'
        ? exchange.policy
        : { ...exchange.policy, whileHeard: undefined, endsAt: partition.endsAt ?? Number.POSITIVE_INFINITY }
    this.compresses = exchange.service.responses.compresses
  }

  /** Made for the first variant that needs it. */
  sentField(name: string): string | undefined {
    this.#sentField ??= createSentField(this.#exchange, withTraces(this.fields, this.#withheld), this.#facts)
    return this.#sentField(name)
  }

  get route(): string {
    return this.#exchange.record.route
  }

  get signal(): AbortSignal {
    return this.#exchange.request.signal
  }

  get client(): string {
    return this.#exchange.client.address
  }

  get contentId(): string {
    return this.#exchange.service.responses.contentId()
  }

  /** Undefined where the key has something that caches in front of the gateway do not know. */
  get forReceivers(): CacheRead['forReceivers'] {
    return this.#isForAll ? this.#exchange.service.responses.downstream?.linesFor : undefined
  }

  isOutdated(): boolean {
    const { service, generation, matching } = this.#exchange
    return !generation.has(service) || (matching.kind === 'found' && !service.contract.hasRow(matching.row))
  }

  isReadable(response: GatewayResponse & { readonly content: Buffer }): boolean {
    const { service, matching } = this.#exchange
    return matching.kind !== 'found' || service.contract.tagger.isReadable(response)
  }

  tags(response: GatewayResponse & { readonly content: Buffer }): readonly string[] {
    const { service, matching } = this.#exchange
    const match = matching.kind === 'found' ? matching : undefined
    const rowTags = service.contract.tagger.storedTags(match, this.#exchange.arguments, response)
    return requestTags(service.contract.tagger, rowTags, this.partition === 'public', this.#sendsUndeclared)
  }
}

const besides = (...names: readonly string[]): ReadonlySet<string> =>
  new Set([...conditionalFields, ...names])

/**
 * Request fields that a read through the cache does not forward: preconditions, cookies that no server reads, and Origin where the
 * gateway itself allows origins, or where all are allowed.
 */
const withholding = {
  asAsked: { nothing: besides(), cookie: besides('cookie') },
  withoutOrigin: { nothing: besides('origin'), cookie: besides('cookie', 'origin') },
} as const

type Read = Extract<Decision, { readonly kind: 'read' }>['caching']

/** Fields that say what the content of a request means (RFC 9110 §8.3 to §8.7). */
const contentFields = ['content-type', 'content-encoding', 'content-language', 'content-location'] as const

/** RFC 10008 §2.7: the content, and what it means. Undefined for GET and HEAD. */
const contentPart = ({
  method,
  content,
  meaning,
  request: { fields },
}: Ready): readonly unknown[] | undefined => {
  if (meaning !== undefined) return [meaning.key]
  return isKeyedByContent(method)
    ? [
        ...contentFields.map((name) => requestField(fields, name) ?? null),
        Buffer.isBuffer(content) ? hash('sha256', content, 'base64url') : null,
      ]
    : undefined
}

/** The partition of the credential and of the fields and content in the key, or the one that all share. */
const partitionFor = (context: CacheContext, decision: Read, exchange: Ready): ReadPartition => {
  const { variant } = exchange
  const content = contentPart(exchange)
  const perCredential = decision.partition === 'credential' ? decision : undefined
  const kind = {
    kind: decision.partition,
    hasUndeclared: decision.keyed !== undefined,
    ...(perCredential === undefined ? {} : { endsAt: perCredential.endsAt }),
  }
  if ([variant, perCredential, decision.keyed, content].every((part) => part === undefined)) return publicPart
  // Each part as JSON: no credential can be read as another combination of parts.
  const parts = [variant?.key, perCredential?.credential, decision.keyed, content].map((part) => part ?? null)
  return { ...kind, name: context.partitionOf(JSON.stringify(parts)) }
}

/** Of the cookies only the declared ones are sent: the key contains no others. */
const withDeclaredCookies = (
  fields: Readonly<Record<string, string>>,
  { variant }: Ready,
  withheld: ReadonlySet<string>,
): Readonly<Record<string, string>> =>
  variant?.cookie === undefined || !withheld.has('cookie') ? fields : { ...fields, cookie: variant.cookie }

/** The origin of an anonymous request, if its response is the same for all origins. */
const sharedOrigin = (
  { request: { fields }, service, matching }: Ready,
  { partition }: Read,
): { readonly origin: string; readonly policy: AnyOrigin } | undefined => {
  const { anyOrigins } = service.responses
  if (anyOrigins === undefined || fields['origin'] === undefined) return undefined
  if (partition !== 'public' || fields['authorization'] !== undefined) return undefined
  const origin = plainOrigin(fields)
  if (origin === undefined || matching.kind !== 'found') return undefined
  const policy = anyOrigins.askRoute(matching.row, matching.path)
  return policy instanceof Promise || policy?.isRepeated !== true ? undefined : { origin, policy }
}

/** Answers a read from the cache, or fetches it and stores the response. */
export const readThrough = (
  context: CacheContext,
  exchange: Ready,
  caching: Read,
  fetch: (outgoing: Outgoing) => Answer,
): Answer => {
  // Where the gateway answers CORS itself, a stored response must not depend on the Origin of the first request.
  const withholdsOrigin = exchange.service.responses.cors !== undefined
  const shared = withholdsOrigin ? undefined : sharedOrigin(exchange, caching)
  const lists = withholdsOrigin || shared !== undefined ? withholding.withoutOrigin : withholding.asAsked
  const withheld = caching.withhold.length === 0 ? lists.nothing : lists.cookie
  const read = new ExchangeRead(
    exchange,
    partitionFor(context, caching, exchange),
    withheld,
    context.forwarding,
  )
  const answer = context.cache.answer(read, (extra) =>
    fetch({
      exchange,
      effect: 'read',
      // A precondition of a POST is about what it changes (RFC 9110 §13.2.1): the response is fetched whole.
      extraFields: isPost(exchange.method) ? {} : withDeclaredCookies(extra.fields, exchange, withheld),
      // Of a miss alone.
      withheld: withTraces(exchange.request.fields, withheld),
      acceptEncoding: codingsToStore(exchange, extra.fields),
      background: extra.background,
      signal: extra.signal,
    }),
  )
  return whenKnown(answer, (response) => {
    const { record, method, service } = exchange
    record.cache = response.outcome
    const { forReceivers } = response
    // A hit is current. Of what was awaited, such as a compressed form, something may have been invalidated meanwhile.
    record.isForReceivers =
      forReceivers !== undefined &&
      service.responses.downstream?.mayStore() === true &&
      (!(answer instanceof Promise) || context.cache.holds(forReceivers))
    if (response.ageSeconds !== undefined) record.ageSeconds = response.ageSeconds
    return shared === undefined ? response : permitted(response, shared.policy, shared.origin, method)
  })
}
