import type { Row } from '../row.ts'

/** The open contract: one row that matches any path. The router does not compile its pattern. */
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
