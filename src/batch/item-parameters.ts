import type { BatchItem } from './item.ts'

/** Names of the parameters an item sets, in query and body, down to the first bracket. */
export const parametersOf = (item: BatchItem, bodyNames: readonly string[]): readonly string[] => {
  if (item.query === '') return bodyNames
  const inQuery = [...new URLSearchParams(item.query).keys()].map((name) => name.split('[', 1)[0] ?? '')
  return inQuery.concat(bodyNames)
}
