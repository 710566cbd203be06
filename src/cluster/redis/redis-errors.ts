/** Why the store failed: the first word of its error, the code of the connection, `timeout`, or `other`. */
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
  // Made here: the reply is not valid.
  'MALFORMED',
  // Not signed with the key of this instance.
  'UNSIGNED',
] as const

/** Undefined: there is no connection; its loss was reported already. */
const troubleOf = (error: Error): StoreTrouble | undefined => {
  if (/^Connection is closed|^Stream isn't writeable|^Cluster isn't ready/.test(error.message))
    return undefined
  if (error.message.startsWith('Command timed out')) return 'timeout'
  const code = 'code' in error ? error.code : undefined
  // The first word of the error, also inside an error of a script and in a repeated one.
  const said = error.message.replace(/^Too many Cluster redirections\. Last error: \w+: /, '')
  return known.find((one) => one === code || said.startsWith(one)) ?? 'other'
}

/** Classifies an error of the store and reports it. */
export type Troubled = (error: unknown) => void

const reportEveryMs = 60_000

/** Counts errors, and logs each kind at most once a minute: every command may fail. */
export const createErrorReporter = (
  monotonic: () => number,
  report: (trouble: StoreTrouble, isNews: boolean) => void,
): Troubled => {
  const reportedAt = new Map<StoreTrouble, number>()
  return (error) => {
    const trouble = error instanceof Error ? troubleOf(error) : 'other'
    if (trouble === undefined) return
    const isNews = monotonic() - (reportedAt.get(trouble) ?? Number.NEGATIVE_INFINITY) >= reportEveryMs
    if (isNews) reportedAt.set(trouble, monotonic())
    report(trouble, isNews)
  }
}
