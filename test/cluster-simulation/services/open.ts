import {
  get,
  type Interface,
  items,
  json,
  jsonType,
  present,
  type Resource,
  type Shown,
  withPath,
} from './interface.ts'

const listPath = '/list'
const groups = ['Cache-Groups', '"items"'] as const

const resource = (path: string, shownItems: readonly number[]): Resource => ({
  ...{ name: path, items: shownItems, requests: [get(path)] },
  shown: (text) => JSON.parse(text) as Shown,
})

/** Tags in headers of the upstream: a write of one item leaves the other items stored. */
export const openInterface: Interface = {
  kind: 'open',
  item: (item) => resource(`/items/${item}`, [item]),
  lists: [resource(listPath, items)],
  viewOf: ({ target }) => {
    if (target === listPath)
      return {
        items,
        rendered: (states) => ({
          ...{ status: 200, headers: [...jsonType, ...groups] },
          content: json(Object.fromEntries(present(states))),
        }),
      }
    const item = items.find((one) => target.startsWith('/items/') && withPath(one, target))
    if (item === undefined) return undefined
    return {
      items: [item],
      rendered: (states) => {
        const shown = present(states)
        const status = shown.length === 0 ? 404 : 200
        return { status, headers: jsonType, content: json(Object.fromEntries(shown)) }
      },
    }
  },
  write: (item, verb) => ({
    ...{ method: verb === 'delete' ? 'DELETE' : 'PUT', target: `/items/${item}` },
    ...{ headers: {}, content: undefined },
  }),
  writeHeaders: [...jsonType, 'Cache-Group-Invalidation', '"items"'],
  written: ({ item, version }) => ({ status: 200, content: json({ [item]: version }) }),
  savesAnew: true,
  unknownReachesLists: false,
  batchTarget: undefined,
  batchHeaders: {},
}
