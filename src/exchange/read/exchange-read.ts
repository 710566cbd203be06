import { cacheKey } from '../../cache/cache-key.ts'
import type { CacheRead } from '../../cache/cache-read.ts'
import type { CachePolicy } from '../../cache/decide-caching.ts'
import type { Readability } from '../../http/bodies/json-readability.ts'
import { withTraces } from '../../http/headers/credential-headers.ts'
import type { RequestHeaders } from '../../http/headers/header-lines.ts'
import type { GatewayResponse, ResponseHead } from '../../http/message.ts'
import { isHead } from '../../http/methods.ts'
import { requestTags } from '../../service/tagger.ts'
import { createSentHeader } from '../forward/sent-headers.ts'
import type { ForwardingFacts } from '../ports.ts'
import type { ValidatedContext } from '../request-context.ts'
import { publicPart, type ReadPartition } from './partition.ts'

const keyOf = (
  { service, target, recalled, client }: ValidatedContext,
  { name: partition, keyAt }: ReadPartition,
): string => {
  const { name } = service
  const { host, publicRoot } = service.address
  // The upstream is sent the scheme: it may redirect one to the other.
  const scheme = (client.protocol === 'https') === publicRoot.startsWith('https:') ? '' : client.protocol
  if (host === '' && scheme === '') {
    if (recalled?.kind === 'valid' && partition === publicPart.name) return recalled.publicKey
    if (keyAt !== undefined) return keyAt(name, target)
  }
  return cacheKey({ service: name, target, partition, host, scheme })
}

/** The cache's view of a request. A class with lazy members: each hit makes one, and needs few of them. */
export class ExchangeRead implements CacheRead {
  readonly #context: ValidatedContext
  readonly #stripped: ReadonlySet<string>
  readonly #facts: ForwardingFacts
  readonly #isForAll: boolean
  readonly #hasKeyedHeader: boolean
  #sentHeader: ((name: string) => string | undefined) | undefined
  readonly service: string
  readonly key: string
  readonly partition: CacheRead['partition']
  readonly method: 'GET' | 'HEAD'
  readonly headers: RequestHeaders
  readonly policy: CachePolicy
  readonly compresses: boolean
  readonly step: CacheRead['step']
  build: CacheRead['build'] = undefined

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
    this.key = keyOf(context, partition)
    this.partition = partition.kind
    this.#isForAll = partition.name === publicPart.name
    this.#hasKeyedHeader = partition.hasUndeclared === true
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

  get splitBy(): CacheRead['splitBy'] {
    if (this.#hasKeyedHeader) return 'key-header'
    return this.#context.sendsUndeclared ? 'key-parameter' : undefined
  }

  get signal(): AbortSignal {
    return this.#context.request.signal
  }

  get client(): string {
    return this.#context.client.address
  }

  get sentContent(): string | undefined {
    const { meaning, query, content } = this.#context
    if (meaning === undefined) return undefined
    return Buffer.isBuffer(content) ? `${query}\n${content.toString('latin1')}` : query
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
    return (
      !snapshot.newestHas(service) || (matching.kind === 'found' && !service.contract.hasRow(matching.row))
    )
  }

  readability(head: ResponseHead, content: Buffer | undefined): Readability {
    const { service, matching, query } = this.#context
    // It is the response to this request alone: those of others run no tasks, and need no redirect.
    if (service.contract.scheduledTasks?.runBehind(query, head) === true) return 'unreadable'
    return matching.kind === 'found' ? service.contract.tagger.readability(head, content) : 'readable'
  }

  tags(response: GatewayResponse & { readonly content: Buffer }): readonly string[] {
    const { service, matching, target } = this.#context
    const match = matching.kind === 'found' ? matching : undefined
    const rowTags = service.contract.tagger.storedTags(match, this.#context.arguments, response)
    return requestTags(service.contract, rowTags, {
      service: service.name,
      target,
      isPublic: this.partition === 'public',
      sendsUndeclared: this.#context.sendsUndeclared || this.#hasKeyedHeader,
    })
  }
}
