import type { CachePolicy } from '../cache/decide-caching.ts'
import type { Sensitivity } from '../cache/sensitivity.ts'
import type { Found } from '../contracts/finding.ts'
import type { GatewayResponse } from '../http/message.ts'

/** Everything about a valid GET that follows from its target alone. */
export type ValidTarget = {
  readonly kind: 'valid'
  readonly matching: Found
  /** Canonical path and query, relative to the mount. */
  readonly target: string
  readonly query: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly sendsUndeclared: boolean
  readonly sensitive: Sensitivity | undefined
  /** Targets whose responses depend on declared fields are not remembered. */
  readonly variant: undefined
  readonly policy: CachePolicy
  /** Cache key of the public partition, for services whose responses do not depend on the host. */
  readonly publicKey: string
}

/** The refusal of a GET without content, Content-Type or credential: all that it depends on beside the target. */
export type RefusedTarget = {
  readonly kind: 'refused'
  readonly matching: Found
  /** For metrics and the log. */
  readonly code: string
  readonly response: GatewayResponse
}

export type RecalledTarget = ValidTarget | RefusedTarget

/** Canonical forms of raw targets that were seen before, and refusals: a hit costs neither routing nor validation. */
export type TargetMemo = {
  recall(rawTarget: string): RecalledTarget | undefined
  remember(rawTarget: string, recalled: RecalledTarget): void
  /** The route table has changed. */
  clear(): void
}

/** Longer ones are rare and would let a flood of them hold much memory. */
const longestTarget = 512

/**
 * Bounded in entries; with `longestTarget` that bounds bytes too. Two generations stand in for an order of use: what is
 * recalled from the old one moves to the new one, and when that is full the old one is dropped.
 */
export const createTargetMemo = (mostEntries: number): TargetMemo => {
  const perGeneration = Math.ceil(mostEntries / 2)
  let young = new Map<string, RecalledTarget>()
  let old = new Map<string, RecalledTarget>()

  const keep = (rawTarget: string, recalled: RecalledTarget): void => {
    if (young.size >= perGeneration) {
      old = young
      young = new Map()
    }
    young.set(rawTarget, recalled)
  }
  return {
    recall: (rawTarget) => {
      const recalled = young.get(rawTarget)
      if (recalled !== undefined) return recalled
      const aged = old.get(rawTarget)
      if (aged !== undefined) keep(rawTarget, aged)
      return aged
    },
    remember: (rawTarget, recalled) => {
      if (rawTarget.length <= longestTarget) keep(rawTarget, recalled)
    },
    clear: () => {
      young = new Map()
      old = new Map()
    },
  }
}
