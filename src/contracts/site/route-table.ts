import type { Row } from '../row.ts'
import { batchBody } from './action-bodies.ts'
import { appearanceRows } from './appearance-rows.ts'
import { contentRows } from './content-rows.ts'
import { posts, reads, row } from './row-builders.ts'
import { contactFormRows, oembedRows } from './service-rows.ts'

/**
 * The route table of the site contract, in the order in which WordPress looks for a match:
 * the first row whose pattern fits and that has the method answers.
 */
export const siteRows: readonly Row[] = [
  row({
    id: 'index',
    template: '/',
    kind: 'index',
    handledBy: 'discovery',
    endpoints: [reads({ context: { default: 'view' } })],
  }),
  row({
    id: 'batch',
    template: '/batch/v1',
    kind: 'batch',
    handledBy: 'batch',
    endpoints: [posts(batchBody)],
  }),
  ...oembedRows,
  ...contactFormRows,
  ...contentRows,
  ...appearanceRows,
]
