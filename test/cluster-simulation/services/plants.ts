import { targetParts } from '../../../src/http/targets.ts'
import { get, type Interface, items, json, jsonType, present, type Resource } from './interface.ts'

type Plant = { readonly id: number; readonly name: string }

const path = '/plants'

const bearer = (reader: string): Readonly<Record<string, string>> => ({ authorization: `Bearer ${reader}` })

/** The one list, as it is stored for one caller. */
const listOf = (reader: string): Resource => ({
  ...{ name: `${path}:${reader}`, items },
  requests: ['', '?limit=100', '?limit=0100'].map((query) => get(path + query, bearer(reader))),
  shown: (text) =>
    Object.fromEntries((JSON.parse(text) as readonly Plant[]).map(({ id, name }) => [id, Number(name)])),
})

const writer = bearer('writer')

/** One list, stored for each caller, that every write drops. An item stands for the caller who looks at it. */
export const plantsInterface: Interface = {
  kind: 'plants',
  item: (item) => listOf(`reader-${item % 2}`),
  lists: [listOf('reader-0'), listOf('reader-1')],
  viewOf: ({ target }) =>
    targetParts(target).path === path
      ? {
          items,
          rendered: (states) => ({
            ...{ status: 200, headers: jsonType },
            content: json(present(states).map(([id, version]) => ({ id, name: String(version) }))),
          }),
        }
      : undefined,
  write: (item, verb) =>
    verb === 'delete'
      ? { method: 'DELETE', target: `${path}/${item}`, headers: writer, content: undefined }
      : {
          ...{ method: 'POST', target: path, headers: { ...writer, 'content-type': 'application/json' } },
          content: json({ id: item, name: 'another' }),
        },
  writeHeaders: jsonType,
  written: ({ item, verb, version }) =>
    verb === 'delete'
      ? { status: 204, content: Buffer.alloc(0) }
      : { status: 200, content: json({ id: item, name: String(version) }) },
  savesAnew: true,
  unknownReachesLists: true,
  batchTarget: '/batch',
  batchHeaders: { ...writer, 'content-type': 'application/json' },
}
