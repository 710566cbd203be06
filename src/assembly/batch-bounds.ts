import type { ArgumentSchema, Row } from '../contracts/row.ts'

/** What one batch may hold, beyond what holds for all content. */
export type BatchBounds = {
  readonly items: number
  /** Of an item's path with its query, as of the target of a request of its own. */
  readonly pathCharacters: number
}

/** Of an item, and of its headers: more than servers take in one request (Apache has 100). */
const mostMembers = 100

const boundedItem = (item: ArgumentSchema, pathCharacters: number): ArgumentSchema => {
  const { properties = {} } = item
  return {
    ...item,
    maxProperties: mostMembers,
    properties: {
      ...properties,
      path: { ...properties['path'], maxLength: pathCharacters },
      headers: { ...properties['headers'], maxProperties: mostMembers },
    },
  }
}

/** The batch route says what it takes, to whoever asks the discovery document, and refuses more before anything is made of it. */
export const withBatchBounds = (
  rows: readonly Row[],
  { items: maxItems, pathCharacters }: BatchBounds,
): readonly Row[] => {
  const bounded = (requests: ArgumentSchema): ArgumentSchema => ({
    ...requests,
    maxItems,
    items: boundedItem(requests.items ?? {}, pathCharacters),
  })
  return rows.map((row) =>
    row.kind !== 'batch'
      ? row
      : {
          ...row,
          endpoints: row.endpoints.map((endpoint) => ({
            ...endpoint,
            arguments: {
              ...endpoint.arguments,
              requests: bounded(endpoint.arguments['requests'] ?? {}),
            },
          })),
        },
  )
}
