import { expect } from 'vitest'
import type { BatchResponse } from './send-batch.ts'

/** A case in which the gateway means to answer otherwise, why, and what then holds. */
export type Difference = {
  readonly reason: string
  compare(response: BatchResponse, plain: BatchResponse): void
}

type Item = {
  readonly status: number
  readonly body: { readonly code?: string }
  readonly headers: Record<string, string> | []
}

const itemsOf = (response: BatchResponse): readonly Item[] =>
  (response.body as { readonly responses: readonly Item[] }).responses

const unparsablePath: Difference = {
  reason:
    'WordPress before 6.8 dies of a path that it cannot parse, and the whole batch with it; later ones answer the item',
  compare: (response, plain) => {
    expect(plain.status).toBe(500)
    expect(response.status).toBe(207)
    const codes = itemsOf(response).map((item) => item?.body.code)
    expect(codes).toContain('parse_path_failed')
  },
}

const withoutAllow = (response: BatchResponse): unknown =>
  itemsOf(response).map((item) => (item.status === 400 ? { ...item, headers: {} } : item))

const allowOfRefused: Difference = {
  reason:
    'what a caller may do only WordPress knows; an item that is refused before it gets there shows what the route can do',
  compare: (response, plain) => {
    expect(response.status).toBe(plain.status)
    expect(withoutAllow(response)).toEqual(withoutAllow(plain))
  },
}

const otherId: Difference = {
  reason: 'an id in the body that contradicts the path is refused (docs/decisions/0003)',
  compare: (response, plain) => {
    const refused = itemsOf(response)[1]
    expect([refused?.status, refused?.body.code]).toEqual([400, 'trellis_ambiguous_request'])
    const others = (items: readonly Item[]) => items.filter((_, at) => at !== 1)
    expect(others(itemsOf(response))).toEqual(others(itemsOf(plain)))
  },
}

const partOfTheWhole: Difference = {
  reason: '_fields that leads into the list gives an empty list in WordPress; the gateway ignores it',
  compare: (response, plain) => {
    expect(plain.body).toEqual({ responses: [] })
    expect(itemsOf(response)).toHaveLength(1)
  },
}

const envelopeOfTheWhole: Difference = {
  reason:
    '_envelope is for clients that cannot see a status; that of a batch says nothing, and the gateway ignores it',
  compare: (response, plain) => {
    expect(plain.body).toMatchObject({ status: 207, body: response.body })
  },
}

const neverKept: Difference = {
  reason:
    'a 404 of the gateway says to everybody that it is not to be kept, one of WordPress to who is logged in',
  compare: (response, plain) => {
    const { expires: _, 'cache-control': control, ...headers } = response.headers
    const { expires: __, 'cache-control': theirs, ...theirHeaders } = plain.headers
    expect(control).toBe('no-store')
    expect(theirs).toContain('no-store')
    expect({ ...response, headers }).toEqual({ ...plain, headers: theirHeaders })
  },
}

const readAmongWrites: Difference = {
  reason:
    'WordPress refuses a batch with a read in it; the gateway takes reads, and refuses one that has a body alone',
  compare: (response, plain) => {
    expect([plain.status, response.status]).toEqual([400, 207])
    expect(itemsOf(response)[1]).toMatchObject({ status: 400, body: { code: 'trellis_ambiguous_request' } })
  },
}

/** By the title of the case. Anything else is answered alike. */
const differences: Readonly<Record<string, Difference>> = {
  'path: a port that is none': unparsablePath,
  'path: no host': unparsablePath,
  'path: three slashes': unparsablePath,
  'refused in every way': unparsablePath,
  'all must validate, one does not': unparsablePath,
  'rights of wrong-password': allowOfRefused,
  'rights of subscriber': allowOfRefused,
  'an id in the body': otherId,
  GET: readAmongWrites,
  'GET of the route': neverKept,
  'PUT to the route': neverKept,
  '_fields of a part': partOfTheWhole,
  '_envelope of the whole': envelopeOfTheWhole,
}

/** The difference that is meant to be, if there is one. */
export const expectedDifference = (title: string): Difference | undefined => differences[title]
