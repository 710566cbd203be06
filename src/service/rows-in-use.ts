import { hash } from 'node:crypto'
import type { Contract } from './contract.ts'
import { createRouter } from './router.ts'
import type { Row } from './row.ts'

/** What of a table tags depend on, beside the request. */
const tableIdOf = (rows: readonly Row[]): string =>
  hash(
    'sha256',
    JSON.stringify(
      rows.map(({ template, collection, kind, endpoints }) => [
        template,
        collection,
        kind,
        endpoints.map(({ methods, asSent }) => [methods, asSent]),
      ]),
    ),
    'base64url',
  )

/** The rows of a contract, until others are learned in their place. */
export const createRowsInUse = (
  find: Contract['find'],
): Pick<Contract, 'find' | 'learn' | 'hasRow' | 'tableId'> => {
  let router = find
  /** Undefined: the rows of the contract, which never change. */
  let current: ReadonlySet<Row> | undefined
  /** Of the table before the first index: every write reaches what is stored by them. */
  let first: ReadonlySet<Row> | undefined
  let tableId = ''
  return {
    find: (method, path) => router(method, path),
    learn: (listed, learned) => {
      const all = [...listed, ...learned]
      router = createRouter(all).find
      current = new Set(all)
      first ??= current
      tableId = tableIdOf(all)
    },
    hasRow: (row) => current === undefined || current.has(row) || first?.has(row) === true,
    tableId: () => tableId,
  }
}
