import type { Invalidation } from '../../cache/invalidation.ts'
import type { Coherence } from '../../cluster/coherence.ts'
import type { Config } from '../../config/config.ts'
import { GatewayError } from '../../errors.ts'
import type { CacheDeps } from '../../exchange/ports.ts'
import type { Downstreams } from './downstreams.ts'

export type BroadcastResult = Awaited<ReturnType<Coherence['broadcast']>> & {
  /** A cache in front of the gateway without which nothing is acknowledged has not confirmed. */
  readonly unconfirmed: boolean
}

type WriteRegistry = NonNullable<CacheDeps['writeRegistry']>

/** Sends invalidations to the other processes and to the caches in front of the gateway. */
export class Broadcast {
  readonly #coherence: Coherence | undefined
  readonly #downstreams: Downstreams

  constructor(coherence: Coherence | undefined, downstreams: Downstreams) {
    this.#coherence = coherence
    this.#downstreams = downstreams
  }

  /** To be awaited before a change is acknowledged. */
  async send(invalidations: readonly Invalidation[], write?: string): Promise<BroadcastResult> {
    const others = (await this.#coherence?.broadcast(invalidations, write)) ?? {
      entries: 0,
      unacknowledged: false,
    }
    return { ...others, unconfirmed: (await this.#downstreams.purge(invalidations)) === 'unconfirmed' }
  }

  /** Records and broadcasts the writes of a configuration; undefined where nobody else stores what they change. */
  writeRegistryFor({ services }: Pick<Config, 'services'>): WriteRegistry | undefined {
    const hasDownstream = services.some(({ downstream }) => downstream !== undefined)
    return hasDownstream ? this.#registryWithDownstreams : this.#coherence
  }

  readonly #registryWithDownstreams: WriteRegistry = {
    begin: async (invalidations, mayMatter) => {
      if (this.#downstreams.refuses(invalidations))
        throw new GatewayError('receiver_behind', { retryAfterSeconds: 1 })
      return this.#coherence === undefined
        ? { kind: 'begun', write: '' }
        : this.#coherence.begin(invalidations, mayMatter)
    },
    broadcast: async (invalidations, write) => {
      const { unconfirmed } = await this.send(invalidations, write)
      if (unconfirmed) throw new GatewayError('receiver_unconfirmed')
    },
  }
}
