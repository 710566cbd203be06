import type { ProtocolFault } from './bundle.ts'
import { faultIn as of } from './fault-in.ts'

const broadcast = of('gateway/parts/broadcast.ts')
const downstream = of('downstream/downstream.ts')
const receiver = of('downstream/receiver-instance.ts')
const exchangeRead = of('exchange/read.ts')

const next =
  (file: string) =>
  (name: string, right: string, wrong = ''): ProtocolFault => ({
    ...{ name, right, wrong },
    file: `packages/next/${file}`,
  })

/** What a cache in front of all gateways may store, and when it is purged. */
export const frontFaults: readonly ProtocolFault[] = [
  downstream(
    'front: a purge does not wait for responses that are on their way',
    'await Promise.all([sleep(config.settleMs), ',
    'await Promise.all([',
  ),
  downstream(
    'front: what another process has changed is not purged, although it may have ended',
    'again: (invalidations) => remember(tags.reached(invalidations)),',
    'again: () => undefined,',
  ),
  broadcast(
    'front: a change is acknowledged before it is purged',
    "unconfirmed: (await this.#downstreams.purge(invalidations)) === 'unconfirmed' }",
    'unconfirmed: this.#downstreams.purge(invalidations) === undefined }',
  ),
  broadcast(
    'front: purged before the other gateways have dropped what changed',
    `const others = (await this.#coherence?.broadcast(invalidations, write)) ?? {
      entries: 0,
      unacknowledged: false,
    }
    return { ...others, unconfirmed: (await this.#downstreams.purge(invalidations)) === 'unconfirmed' }`,
    `const unconfirmed = (await this.#downstreams.purge(invalidations)) === 'unconfirmed'
    const others = (await this.#coherence?.broadcast(invalidations, write)) ?? {
      entries: 0,
      unacknowledged: false,
    }
    return { ...others, unconfirmed }`,
  ),
  broadcast(
    'front: a write is acknowledged although its purge is not confirmed',
    "if (unconfirmed) throw new GatewayError('receiver_unconfirmed')",
  ),
  exchangeRead(
    'front: stores what a write has overtaken',
    '(!(reply instanceof Promise) || deps.cache.stillStores(forDownstream))',
    'reply !== undefined',
  ),
  exchangeRead(
    'front: stores while it is behind',
    'service.responses.downstream?.mayStore() === true &&',
    'service.responses.downstream !== undefined &&',
  ),
  of('cache/cache.ts')(
    'front: stores what a process without a lease has fetched',
    'return this.#isConnected() && this.#store.peek',
    'return this.#store.peek',
  ),
  of('cache/respond/responder.ts')(
    'front: stores what is served stale',
    "outcome === 'stale' || stored.sentHeaders === undefined ? undefined : stored,",
    'stored.sentHeaders === undefined ? undefined : stored,',
  ),
  of('downstream/outward-tags.ts')(
    'front: a response has the tag of everything alone',
    'const all = new Set([everything, ...tags.map(outward)])',
    'const all = new Set([everything])',
  ),
  receiver(
    'front: a purge that failed counts as confirmed',
    '      await this.#failed(error)\n      return\n',
    '      await this.#failed(error)\n',
  ),
  receiver(
    'front: a purge that failed is not sent again',
    'this.#add(error instanceof Restarted ? [this.#options.everything] : tags)',
    'if (error instanceof Restarted) this.#add([this.#options.everything])',
  ),
  receiver(
    'front: a receiver that was restarted counts as informed',
    'if (isAnother && !informed.includes(this.#options.everything)) throw new Restarted()',
  ),
  next('cache-handler.js')(
    'front: next takes what it gets for as new as it arrives',
    'const begun = this.#begun.get(key)',
    'const begun = purges.now',
  ),
]
