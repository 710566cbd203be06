import { hash } from 'node:crypto'
import { type CacheRead, cacheKey } from '../cache/cache-read.ts'
import type { CachePolicy } from '../cache/decide-caching.ts'
import { conditionalHeaders } from '../http/conditional/preconditions.ts'
import { type AnyOrigin, plainOrigin, withCorsHeaders } from '../http/headers/cors.ts'
import { withTraces } from '../http/headers/credential-headers.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { memoizeByObject } from '../http/memo.ts'
import { type GatewayResponse, type ResponseOrPromise, whenKnown } from '../http/message.ts'
import { isHead, isKeyedByContent, isPost } from '../http/methods.ts'
import { type ContentMeaning, requestTags } from '../service/contract.ts'
import type { Decision } from '../service/decide.ts'
import type { Outgoing, ValidatedContext } from './exchange.ts'
import { codingsToStore } from './forward/accepted-codings.ts'
import { createSentHeader } from './forward/sent-headers.ts'
import type { CacheDeps, ForwardingFacts } from './ports.ts'

/** The partition of the cache that a request reads from; `name` as in the key. */
export type ReadPartition = {
  readonly kind: CacheRead['partition']
  readonly name: string
  /** The key has a header that the contract does not declare. */
  readonly hasUndeclared?: boolean
  /** When the credential expires; absent for all others. */
  readonly endsAt?: number
}

const keyOf = ({ service, target, recalled, client }: ValidatedContext, partition: string): string => {
  const { name } = service
  const { host, publicRoot } = service.address
  // The upstream is sent the scheme: it may redirect one to the other.
  const scheme = (client.protocol === 'https') === publicRoot.startsWith('https:') ? '' : client.protocol
  return recalled?.kind === 'valid' && partition === 'public' && host === '' && scheme === ''
    ? recalled.publicKey
    : cacheKey({ service: name, target, partition, host, scheme })
}

export const publicPart: ReadPartition = { kind: 'public', name: 'public' }

/** The cache's view of a request. A class with lazy members: each hit makes one, and needs few of them. */
export class ExchangeRead implements CacheRead {
  readonly #context: ValidatedContext
  readonly #stripped: ReadonlySet<string>
  readonly #facts: ForwardingFacts
  readonly #isForAll: boolean
  readonly #sendsUndeclared: boolean
  #sentHeader: ((name: string) => string | undefined) | undefined
  readonly service: string
  readonly key: string
  readonly partition: CacheRead['partition']
  readonly method: 'GET' | 'HEAD'
  readonly headers: RequestHeaders
  readonly policy: CachePolicy
  readonly compresses: boolean
  readonly step: CacheRead['step']

  constructor(
    context: ValidatedContext,
    partition: ReadPartition,
    stripped: ReadonlySet<string>,
    facts: ForwardingFacts,
  ) {
    this.#context = context
    this.#stripped = stripped
    this.#facts = facts
    this.service = context.service.name
    this.key = keyOf(context, partition.name)
    this.partition = partition.kind
    this.#isForAll = partition.name === publicPart.name
    this.#sendsUndeclared = context.sendsUndeclared || partition.hasUndeclared === true
    this.method = isHead(context.method) ? 'HEAD' : 'GET'
    this.headers = context.request.headers
    // No report of a change says that a credential has lost a right.
    this.policy =
      partition.kind === 'public'
        ? context.policy
        : { ...context.policy, feedLifetime: undefined, endsAt: partition.endsAt ?? Number.POSITIVE_INFINITY }
    this.compresses = context.service.responses.compresses
    this.step = context.record.trace?.read
  }

  /** Made for the first variant that needs it. */
  sentHeader(name: string): string | undefined {
    this.#sentHeader ??= createSentHeader(
      this.#context,
      withTraces(this.headers, this.#stripped),
      this.#facts,
    )
    return this.#sentHeader(name)
  }

  get route(): string {
    return this.#context.record.route
  }

  get signal(): AbortSignal {
    return this.#context.request.signal
  }

  get client(): string {
    return this.#context.client.address
  }

  get contentId(): string {
    return this.#context.service.responses.contentId()
  }

  /** Undefined where the key has something that caches in front of the gateway do not know. */
  get forDownstream(): CacheRead['forDownstream'] {
    return this.#isForAll ? this.#context.service.responses.downstream?.linesFor : undefined
  }

  isOutOfConfiguration(): boolean {
    const { service, snapshot, matching } = this.#context
    return !snapshot.has(service) || (matching.kind === 'found' && !service.contract.hasRow(matching.row))
  }

  isReadable(response: GatewayResponse & { readonly content: Buffer }): boolean {
    const { service, matching, query } = this.#context
    // It is the response to this request alone: those of others run no tasks, and need no redirect.
    if (service.contract.scheduledTasks?.runBehind(query, response) === true) return false
    return matching.kind !== 'found' || service.contract.tagger.isReadable(response)
  }

  tags(response: GatewayResponse & { readonly content: Buffer }): readonly string[] {
    const { service, matching } = this.#context
    const match = matching.kind === 'found' ? matching : undefined
    const rowTags = service.contract.tagger.storedTags(match, this.#context.arguments, response)
    return requestTags(service.contract.tagger, rowTags, this.partition === 'public', this.#sendsUndeclared)
  }
}

const besides = (...names: readonly string[]): ReadonlySet<string> =>
  new Set([...conditionalHeaders, ...names])

/**
 * Request headers that a read through the cache does not forward: preconditions, cookies that no server reads, and Origin where the
 * gateway itself allows origins, or where all are allowed.
 */
const strippedFromReads = {
  asAsked: { nothing: besides(), cookie: besides('cookie') },
  withoutOrigin: { nothing: besides('origin'), cookie: besides('cookie', 'origin') },
} as const

type Read = Extract<Decision, { readonly kind: 'read' }>['caching']

/** Headers that say what the content of a request means (RFC 9110 §8.3 to §8.7). */
const contentHeaders = ['content-type', 'content-encoding', 'content-language', 'content-location'] as const

/** RFC 10008 §2.7: the content, and what it means. Undefined for GET and HEAD. */
const contentPart = ({
  method,
  content,
  meaning,
  request: { headers },
}: ValidatedContext): readonly unknown[] | undefined => {
  if (meaning !== undefined) return [meaning.key]
  return isKeyedByContent(method)
    ? [
        ...contentHeaders.map((name) => requestHeader(headers, name) ?? null),
        Buffer.isBuffer(content) ? hash('sha256', content, 'base64url') : null,
      ]
    : undefined
}

/** Of requests that only their meaning tells apart: contracts give the same object for the same content, as long as they remember it. */
const partitionsByMeaning = memoizeByObject((partitionOf: CacheDeps['partitionOf']) =>
  memoizeByObject(
    (meaning: ContentMeaning): ReadPartition => ({
      ...{ kind: 'public', hasUndeclared: false },
      name: partitionOf(JSON.stringify([null, null, null, [meaning.key]])),
    }),
  ),
)

/** The partition of the credential and of the headers and content in the key, or the one that all share. */
const partitionFor = (deps: CacheDeps, decision: Read, requestContext: ValidatedContext): ReadPartition => {
  const { variant, meaning } = requestContext
  const isPublic = decision.partition === 'public' && decision.keyed === undefined
  if (meaning !== undefined && isPublic && variant === undefined)
    return partitionsByMeaning(deps.partitionOf)(meaning)
  const content = contentPart(requestContext)
  const perCredential = decision.partition === 'credential' ? decision : undefined
  const kind = {
    kind: decision.partition,
    hasUndeclared: decision.keyed !== undefined,
    ...(perCredential === undefined ? {} : { endsAt: perCredential.endsAt }),
  }
  if ([variant, perCredential, decision.keyed, content].every((part) => part === undefined)) return publicPart
  // Each part as JSON: no credential can be read as another combination of parts.
  const parts = [variant?.key, perCredential?.credential, decision.keyed, content].map((part) => part ?? null)
  return { ...kind, name: deps.partitionOf(JSON.stringify(parts)) }
}

/** Of the cookies only the declared ones are sent: the key contains no others. */
const withDeclaredCookies = (
  headers: Readonly<Record<string, string>>,
  { variant }: ValidatedContext,
  stripped: ReadonlySet<string>,
): Readonly<Record<string, string>> =>
  variant?.cookie === undefined || !stripped.has('cookie') ? headers : { ...headers, cookie: variant.cookie }

/** The origin of an anonymous request, if its response is the same for all origins. */
const sharedOrigin = (
  { request: { headers }, service, matching }: ValidatedContext,
  { partition }: Read,
): { readonly origin: string; readonly policy: AnyOrigin } | undefined => {
  const { anyOrigins } = service.responses
  if (anyOrigins === undefined || headers['origin'] === undefined) return undefined
  if (partition !== 'public' || headers['authorization'] !== undefined) return undefined
  const origin = plainOrigin(headers)
  if (origin === undefined || matching.kind !== 'found') return undefined
  const policy = anyOrigins.askRoute(matching.row, matching.path)
  return policy instanceof Promise || policy?.isRepeated !== true ? undefined : { origin, policy }
}

/** Responds to a read from the cache, or fetches the response and stores it. */
export const readThrough = (
  deps: CacheDeps,
  requestContext: ValidatedContext,
  caching: Read,
  fetch: (outgoing: Outgoing) => ResponseOrPromise,
): ResponseOrPromise => {
  // Where the gateway answers CORS itself, a stored response must not depend on the Origin of the first request.
  const stripsOrigin = requestContext.service.responses.cors !== undefined
  const shared = stripsOrigin ? undefined : sharedOrigin(requestContext, caching)
  const lists =
    stripsOrigin || shared !== undefined ? strippedFromReads.withoutOrigin : strippedFromReads.asAsked
  const stripped = caching.strip.length === 0 ? lists.nothing : lists.cookie
  const read = new ExchangeRead(
    requestContext,
    partitionFor(deps, caching, requestContext),
    stripped,
    deps.forwarding,
  )
  const reply = deps.cache.response(read, (extra) =>
    fetch({
      context: requestContext,
      effect: 'read',
      // A precondition of a POST is about what it changes (RFC 9110 §13.2.1): the response is fetched whole.
      extraHeaders: isPost(requestContext.method)
        ? {}
        : withDeclaredCookies(extra.headers, requestContext, stripped),
      // Of a miss alone.
      stripped: withTraces(requestContext.request.headers, stripped),
      acceptEncoding: codingsToStore(requestContext, extra.headers),
      background: extra.background,
      signal: extra.signal,
    }),
  )
  return whenKnown(reply, (response) => {
    const { record, method, service } = requestContext
    record.cache = response.outcome
    const { forDownstream } = response
    // A hit is current. Of what was awaited, such as a compressed form, something may have been invalidated meanwhile.
    record.isForDownstream =
      forDownstream !== undefined &&
      service.responses.downstream?.mayStore() === true &&
      (!(reply instanceof Promise) || deps.cache.stillStores(forDownstream))
    if (response.ageSeconds !== undefined) record.ageSeconds = response.ageSeconds
    return shared === undefined ? response : withCorsHeaders(response, shared.policy, shared.origin, method)
  })
}
