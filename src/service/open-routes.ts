import type { Row } from './row.ts'

/** Matches any path. The router does not compile its pattern. */
export const anyRow: Row = {
  id: 'open.any',
  template: '/**',
  pattern: '/.*',
  namespace: '',
  collection: '',
  kind: 'item',
  handledBy: 'upstream',
  endpoints: [{ methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], arguments: {}, acceptsUploads: true }],
}

export const openRows: readonly Row[] = [anyRow]
