import { cacheKey } from '../../cache/cache-key.ts'
import type { CacheRead } from '../../cache/cache-read.ts'
import type { CachePolicy } from '../../cache/decide-caching.ts'
import type { RequestFields } from '../../http/fields.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { Ready } from '../exchange.ts'
import { createSentField, type ForwardingFacts } from './forwarding-fields.ts'

/** The partition of the cache that an exchange reads from; `name` as in the key. */
export type ReadPartition = { readonly kind: CacheRead['partition']; readonly name: string }

const keyOf = ({ service, target, recalled }: Ready, partition: string): string =>
  recalled?.kind === 'valid' && partition === 'public' && service.host === ''
    ? recalled.publicKey
    : cacheKey({ service: service.name, target, dialect: '', partition, host: service.host })

/** The partition that all clients share. */
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
    this.policy = exchange.policy
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

  isReadable(response: GatewayResponse & { readonly content: Buffer }): boolean {
    const { service, matching } = this.#exchange
    return matching.kind !== 'found' || service.tagger.isReadable(response)
  }

  tags(response: GatewayResponse & { readonly content: Buffer }): readonly string[] {
    const { service, matching, sendsUndeclared } = this.#exchange
    const found = matching.kind === 'found' ? matching : undefined
    const { callers, undeclared, storedTags } = service.tagger
    if (this.partition === 'public' && !sendsUndeclared)
      return storedTags(found, this.#exchange.arguments, response)
    const more = [this.partition === 'public' ? undefined : callers, sendsUndeclared ? undeclared : undefined]
    const known = more.filter((tag) => tag !== undefined)
    const tags = storedTags(found, this.#exchange.arguments, response)
    return known.length === 0 ? tags : [...new Set([...tags, ...known])]
  }
}
