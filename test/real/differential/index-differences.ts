import type { Difference } from '../../contracts/compare-values.ts'

/** A kind of difference between the gateway's documents and those of WordPress 6.7, with its reason. */
export type ExpectedInIndex = { readonly reason: string; covers(difference: Difference): boolean }

const argumentOf = ({ path }: Difference): string | undefined => path[path.indexOf('args') + 1]

const newerArguments = new Set(['search_semantics', 'ignore_sticky', 'format', 'search_columns'])
const newerEditArguments = new Set(['caption', 'description', 'title', 'post', 'alt_text'])
const batchBounds = new Set(['maxLength', 'maxProperties'])

const isOnlyHere = ({ ours, theirs }: Difference): boolean => ours !== undefined && theirs === undefined

/** The contract is that of WordPress 6.9, and the site under test is a 6.7. */
export const expectedInIndex: readonly ExpectedInIndex[] = [
  {
    reason: 'arguments of 6.9',
    covers: (difference) => isOnlyHere(difference) && newerArguments.has(argumentOf(difference) ?? ''),
  },
  {
    reason: 'arguments of 6.9 of media/edit',
    covers: (difference) =>
      isOnlyHere(difference) &&
      (difference.path[1] ?? '').endsWith('/edit') &&
      newerEditArguments.has(argumentOf(difference) ?? ''),
  },
  {
    reason: "bounds of a batch's items, which WordPress has not",
    covers: (difference) =>
      isOnlyHere(difference) &&
      difference.path[1] === '/batch/v1' &&
      batchBounds.has(difference.path.at(-1) ?? ''),
  },
  {
    reason: 'reads as items of a batch, which WordPress has not',
    covers: ({ path }) => path[1] === '/batch/v1' && path.includes('method') && path.includes('enum'),
  },
  {
    reason: 'the pattern of global styles in 6.9 and in 6.7',
    covers: ({ path }) => path.length === 2 && (path[1] ?? '').startsWith('/wp/v2/global-styles/(?P<id>'),
  },
]
