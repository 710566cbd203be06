import type { CachePolicy, CacheRule } from './decide-caching.ts'

/** The lower lifetimes, and the narrower scope. */
const stricter = (one: CacheRule, other: CacheRule): CacheRule => ({
  ttlMs: Math.min(one.ttlMs, other.ttlMs),
  staleWhileRevalidateMs: Math.min(one.staleWhileRevalidateMs, other.staleWhileRevalidateMs),
  staleIfErrorMs: Math.min(one.staleIfErrorMs, other.staleIfErrorMs),
  override: one.override,
  negativeTtlMs: Math.min(one.negativeTtlMs, other.negativeTtlMs),
  scope: one.scope === 'credential' ? one.scope : other.scope,
})

/** Does the upstream decide about the lifetime under both rules, or under neither, and a heuristic under both or neither? */
const isComparable =
  (profile: CachePolicy['profile'], one: CacheRule) =>
  (other: CacheRule): boolean =>
    one.override === other.override &&
    (profile === 'safe' || one.override || one.ttlMs > 0 === other.ttlMs > 0)

/**
 * The policy for a path that servers read in several ways, for each of which another rule may come first: no response lives longer or
 * is shared more widely than under any of them.
 */
export const strictestPolicy = (
  rules: ReadonlySet<CacheRule | undefined>,
  general: Omit<CachePolicy, 'rule'>,
): CachePolicy => {
  const [first, ...others] = [...rules].filter((rule) => rule !== undefined)
  if (first === undefined) return { ...general, rule: undefined }
  const { profile } = general
  if (rules.has(undefined)) return { ...general, rule: undefined, isAmbiguous: profile !== 'safe' }
  if (!others.every(isComparable(profile, first))) return { ...general, rule: undefined, isAmbiguous: true }
  return { ...general, rule: others.reduce(stricter, first) }
}
