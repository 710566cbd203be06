import { cacheKey } from '../../cache/cache-key.ts'
import type { CacheRead } from '../../cache/cache-read.ts'
import type { CachePolicy } from '../../cache/decide-caching.ts'
import type { RequestFields } from '../../http/fields.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { Ready } from '../exchange.ts'
import { createSentField, type ForwardingFacts } from './forwarding-fields.ts'

/** In which part of the cache an exchange reads; `name` as in the key. */
export type ReadPartition = { readonly kind: CacheRead['partition']; readonly name: string }

const keyOf = ({ service, target, recalled }: Ready, partition: string): string =>
  recalled !== undefined && partition === 'public'
    ? recalled.publicKey
    : cacheKey({ service: service.name, target, dialect: '', partition })

/** The part of the cache that all share. */
export const publicPart: ReadPartition = { kind: 'public', name: 'public' }

/** An exchange as the cache sees it. A class, since every hit makes one: what only a miss asks for costs a hit nothing. */
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
  }

  /** Made when the first variant asks for it. */
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
    const more = [this.partition === 'public' ? undefined : callers, sendsUndeclared ? undeclared : undefined]
    const known = more.filter((tag) => tag !== undefined)
    const tags = storedTags(found, this.#exchange.arguments, response)
    return known.length === 0 ? tags : [...new Set([...tags, ...known])]
  }
}
