import type { CachePolicy, UncacheableReason } from '../cache/decide-caching.ts'
import { createRecentValues } from '../http/memo.ts'
import type { GatewayResponse } from '../http/message.ts'
import type { Found } from './row.ts'

/** Everything about a valid GET that follows from its target alone. */
export type ValidTarget = {
  readonly kind: 'valid'
  readonly matching: Found
  /** Canonical path and query, relative to the mount. */
  readonly target: string
  readonly query: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly sendsUndeclared: boolean
  readonly uncacheable: UncacheableReason | undefined
  /** Targets whose responses depend on declared headers are not remembered. */
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

/** Longer ones are rare, and a flood of them could fill the memory. */
const longestTarget = 512

/**
 * Canonical forms of raw targets that were seen before, and refusals: a hit costs neither routing nor validation. Bounded in entries;
 * with `longestTarget` that bounds bytes too.
 */
export const createTargetMemo = (maxEntries: number) => {
  const recent = createRecentValues<RecalledTarget>(maxEntries)
  return {
    recall: recent.get,
    remember: (rawTarget: string, recalled: RecalledTarget) => {
      if (rawTarget.length <= longestTarget) recent.set(rawTarget, recalled)
    },
    clear: recent.clear,
  }
}

export type TargetMemo = ReturnType<typeof createTargetMemo>
