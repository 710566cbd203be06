/** Why the store does not do what it is asked: its own first word, the code of the connection, `timeout`, or `other`. */
export type StoreTrouble = (typeof known)[number] | 'timeout' | 'other'

const known = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'NOAUTH',
  'WRONGPASS',
  'NOPERM',
  'READONLY',
  'OOM',
  'MISCONF',
  'NOREPLICAS',
  'LOADING',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
  // Of our own: what came is no answer.
  'MALFORMED',
  // Not by an instance with the key of this one.
  'UNSIGNED',
] as const

/** Undefined: there is no connection, or none yet, and whoever lost it has said why. */
const troubleOf = (error: Error): StoreTrouble | undefined => {
  if (/^Connection is closed|^Stream isn't writeable|^Cluster isn't ready/.test(error.message))
    return undefined
  if (error.message.startsWith('Command timed out')) return 'timeout'
  const code = 'code' in error ? error.code : undefined
  // Its first word, also where a script met it, and where it was said once too often.
  const said = error.message.replace(/^Too many Cluster redirections\. Last error: \w+: /, '')
  return known.find((one) => one === code || said.startsWith(one)) ?? 'other'
}

/** Takes an error of the store, and tells its kind. */
export type Troubled = (error: unknown) => void

const toldEveryMs = 60_000

/** Counts troubles, and has each kind told in words once a minute at most: they come with every command. */
export const createTroubled = (
  monotonic: () => number,
  tell: (trouble: StoreTrouble, isNews: boolean) => void,
): Troubled => {
  const toldAt = new Map<StoreTrouble, number>()
  return (error) => {
    const trouble = error instanceof Error ? troubleOf(error) : 'other'
    if (trouble === undefined) return
    const isNews = monotonic() - (toldAt.get(trouble) ?? Number.NEGATIVE_INFINITY) >= toldEveryMs
    if (isNews) toldAt.set(trouble, monotonic())
    tell(trouble, isNews)
  }
}
