import { targetParts } from '../http/targets.ts'
import type { ItemRules } from './contract.ts'
import type { ArgumentSchema, Row } from './row.ts'

type BatchBounds = {
  readonly items: number
  /** Of an item's path with its query, as of the target of a separate request. */
  readonly pathCharacters: number
}

/** Of an item, and of its headers: more than servers take in one request (Apache has 100). */
const maxMembers = 100

/** Reads as well, which the batch of an upstream need not take. */
const itemMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

const ownItem = (item: ArgumentSchema, pathCharacters: number): ArgumentSchema => {
  const { properties = {} } = item
  return {
    ...item,
    maxProperties: maxMembers,
    properties: {
      ...properties,
      method: { ...properties['method'], enum: itemMethods },
      path: { ...properties['path'], maxLength: pathCharacters },
      headers: { ...properties['headers'], maxProperties: maxMembers },
    },
  }
}

/** The batch route as the gateway answers it, which the discovery document announces: with bounds, and with reads as items. */
export const withOwnBatch = (
  rows: readonly Row[],
  { items: maxItems, pathCharacters }: BatchBounds,
): readonly Row[] => {
  const ownRequests = (requests: ArgumentSchema): ArgumentSchema => ({
    ...requests,
    maxItems,
    items: ownItem(requests.items ?? {}, pathCharacters),
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
              requests: ownRequests(endpoint.arguments['requests'] ?? {}),
            },
          })),
        },
  )
}

/** A path and query as a separate request would have them, and any body. */
export const plainItems: ItemRules = {
  target: (text) => {
    const [target = ''] = text.split('#', 1)
    if (!/^\/(?!\/)[\x21-\x7e]*$/.test(target)) return { kind: 'no-route' }
    return { kind: 'target', ...targetParts(target) }
  },
  hasContent: (body) => body !== undefined,
  shownHeaders: ['Link', 'Location', 'Allow', 'Retry-After'],
  isGeneralLink: () => false,
  prefixesWithoutEffect: [],
}
