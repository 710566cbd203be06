import { cacheKey } from '../../../src/cache/cache-key.ts'
import {
  createStoredResponse,
  type StoredResponse,
  setTags,
} from '../../../src/cache/store/stored-response.ts'
import { safePolicy } from './cache-fixture.ts'

/** The public key of `/5`, say. */
export const keyOf = (target: number): string =>
  cacheKey({ service: 'site', target: `/${target}`, partition: 'public' })

export type StoredFacts = {
  readonly target: number
  readonly tags: readonly string[]
  readonly order: number
  readonly content?: Buffer
  /** A selecting header, and what it was. */
  readonly vary?: readonly [name: string, value: string]
}

/** A record as the store gets it. */
export const storedAt = ({ target, tags, order, content, vary }: StoredFacts): StoredResponse => {
  const at = { now: 0, monotonic: 0 }
  const made = createStoredResponse({
    key: keyOf(target),
    head: { status: 200, headers: vary === undefined ? [] : ['Vary', vary[0]] },
    content: content ?? Buffer.from('x'),
    selecting: { sentHeader: (name) => (name === vary?.[0].toLowerCase() ? vary?.[1] : undefined) },
    times: { requested: at, received: at },
    policy: safePolicy(),
    upstreamTag: undefined,
    order,
    codedFrom: Number.POSITIVE_INFINITY,
    forms: [],
  })
  return setTags(made, tags)
}
