/**
 * The steps of a read through the cache, as docs/request-path.md describes them: the same names in code, traces and `explain`. The last
 * three are those of the fetch that readers wait for.
 */
export const readSteps = [
  'lookup',
  'hit',
  'stale-while-revalidate',
  'only-if-cached',
  'join',
  'wait',
  'outcome',
  'lookup-again',
  'stale-if-error',
  'respond',
  'fetch',
  'revalidate',
  'store',
] as const
export type ReadStep = (typeof readSteps)[number]

/** Taken by the reader that started the fetch, on behalf of all that wait for it. */
export type FetchStep = 'fetch' | 'revalidate' | 'store'

/** The ways that most reads go, for `explain`. */
export const usualSteps: Readonly<Record<'hit' | 'miss', readonly ReadStep[]>> = {
  hit: ['lookup', 'hit'],
  miss: ['lookup', 'join', 'fetch', 'wait', 'store', 'outcome', 'respond'],
}
