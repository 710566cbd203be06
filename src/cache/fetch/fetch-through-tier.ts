import type { Clock } from '../../clock.ts'
import { varyKey } from '../../http/vary.ts'
import { currentAgeMs, type Moment } from '../policy/freshness.ts'
import {
  type FromTierOptions,
  fromTier,
  isForTier,
  type SharedTier,
  type TierQuery,
  toTier,
} from '../shared-tier.ts'
import type { Keep } from '../store/store-if-current.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { Flight } from './collapse.ts'
import type { Errand, Landing } from './fetch-outcome.ts'
import type { PassMemo } from './hit-for-pass.ts'

type Fetch = (errand: Errand, flight: Flight) => Promise<Landing>

export type TierFetchOptions = FromTierOptions & {
  readonly tier: SharedTier
  readonly fetch: Fetch
  readonly keep: Keep
  readonly passes: PassMemo
  readonly clock: Clock
}

/** Callers' own parts stay in the memory of one process, and so do parts of answers. */
const mayShare = ({ read, extra }: Errand): boolean =>
  read.method === 'GET' && read.partition === 'public' && extra['range'] === undefined

/** Looks into the second tier before the upstream is asked, and puts there what it gave. */
export const createTierFetch = (options: TierFetchOptions): Fetch => {
  const { tier, fetch, keep, passes, clock } = options
  const moment = (): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })

  const landFound = (stored: StoredResponse, flight: Flight): Landing => ({
    kind: 'shared',
    stored,
    notKept: keep(stored, flight.began),
    upstreamStatus: stored.status,
    ownFields: [],
    validated: false,
    fromTier: true,
  })

  const give = (landing: Landing, since: SharedTier['place']): void => {
    if (landing.kind !== 'shared' || landing.notKept !== undefined || !isForTier(landing.stored)) return
    const { stored } = landing
    tier.store(toTier(stored, currentAgeMs(stored.initialAgeMs, stored.received, moment())), since)
  }

  /** What the tier has by now, or what another process is about to put there; else how to tell that this one is done. */
  const ask = async (errand: Errand, flight: Flight): Promise<StoredResponse | (() => void)> => {
    const { read } = errand
    const query: TierQuery<StoredResponse> = {
      key: read.key,
      secondary: (names) => varyKey(names, read),
      take: (entry) => fromTier(entry, errand, flight, moment(), options),
    }
    const found = await tier.load(query)
    if (found !== undefined) return found
    const claim = await tier.claim(query)
    if (claim.kind === 'mine') return claim.release
    return (await claim.awaited()) ?? (() => undefined)
  }

  const fetchAndGive = async (errand: Errand, flight: Flight, release: () => void): Promise<Landing> => {
    // Read last: what is fetched is newer than everything noted by now.
    const since = tier.place
    errand.asked()
    let released = release
    try {
      const landing = await fetch(errand, flight)
      give(landing, since)
      if (landing.kind === 'filling') {
        released = () => undefined
        void landing.complete.then((whole) => give(whole, since)).finally(release)
      }
      return landing
    } finally {
      released()
    }
  }

  return async (errand, flight) => {
    if (!mayShare(errand) || passes.has(errand.read.key, clock.monotonic())) {
      errand.asked()
      return fetch(errand, flight)
    }
    const found = await ask(errand, flight)
    return typeof found === 'function' ? fetchAndGive(errand, flight, found) : landFound(found, flight)
  }
}
