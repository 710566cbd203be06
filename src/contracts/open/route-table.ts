import type { Row } from '../row.ts'

/** The open contract: one row that any path fits. It lists no methods, because it takes all; the router never parses it. */
export const openRows: readonly Row[] = [
  {
    id: 'open.any',
    template: '/**',
    pattern: '/.*',
    namespace: '',
    collection: '',
    kind: 'item',
    handledBy: 'upstream',
    endpoints: [{ methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], arguments: {}, acceptsUploads: true }],
  },
]
