import type { BatchItem } from './item.ts'

/** Names of the parameters an item sets, in query and body, down to the first bracket. */
export const parametersOf = (item: BatchItem): string[] => {
  const inQuery = [...new URLSearchParams(item.query).keys()].map((name) => name.split('[', 1)[0] ?? '')
  if (item.content === undefined) return inQuery
  const body: unknown = JSON.parse(item.content.toString())
  return typeof body === 'object' && body !== null ? [...inQuery, ...Object.keys(body)] : inQuery
}
