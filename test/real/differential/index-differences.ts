import type { Difference } from '../../contracts/compare-values.ts'

/** A kind of difference between the gateway's documents and those of WordPress 6.7, with its reason. */
export type ExpectedInIndex = { readonly reason: string; covers(difference: Difference): boolean }

const argumentOf = ({ path }: Difference): string | undefined => path[path.indexOf('args') + 1]

const newerArguments = new Set(['search_semantics', 'ignore_sticky', 'format', 'search_columns'])
const newerEditArguments = new Set(['caption', 'description', 'title', 'post', 'alt_text'])
const batchBounds = new Set(['maxLength', 'maxProperties'])
const listsOfTheSite = new Set(['has_published_posts', 'locale'])
const changedArguments = new Set(['app_id', 'media_type', 'mime_type', 'modifiers'])

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
    reason: 'arguments that 6.9 has changed',
    covers: (difference) => changedArguments.has(argumentOf(difference) ?? ''),
  },
  {
    reason: 'meta of comments, of which 6.9 registers some and 6.7 none',
    covers: (difference) =>
      (difference.path[1] ?? '').startsWith('/wp/v2/comments') &&
      difference.path.at(-1) === 'properties' &&
      argumentOf(difference) === 'meta',
  },
  {
    reason: 'post types and languages of the site, which the gateway does not list for users',
    covers: (difference) =>
      (difference.path[1] ?? '').startsWith('/wp/v2/users') &&
      difference.path.at(-1) === 'enum' &&
      listsOfTheSite.has(argumentOf(difference) ?? ''),
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
    reason: 'a title that 6.9 adds to the schema of registered meta',
    covers: (difference) =>
      isOnlyHere(difference) && difference.path.at(-1) === 'title' && difference.ours === '',
  },
  {
    reason: 'the pattern of global styles in 6.9 and in 6.7',
    covers: ({ path }) => path.length === 2 && (path[1] ?? '').startsWith('/wp/v2/global-styles/(?P<id>'),
  },
]
