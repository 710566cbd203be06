import type { Found, Row, RowKind } from '../../../src/service/row.ts'
import type { Change, TaggedArguments, WriteResponse } from '../../../src/service/tagger.ts'
import { createSiteTagger } from '../../../src/wordpress/tags/site-tagger.ts'
import { siteTags } from '../../../src/wordpress/tags/tags.ts'

export const tagger = createSiteTagger({ service: 'site', table: siteTags })

/** An issue as the router gives it, for a row of that kind. */
export const found = (
  collection: string,
  kind: RowKind,
  pathParameters: Record<string, string> = {},
): Found => {
  const row: Row = {
    id: `${collection}.${kind}`,
    template: `/site/v2/${collection}`,
    pattern: `/site/v2/${collection}`,
    namespace: 'site/v2',
    collection,
    kind,
    handledBy: 'upstream',
    endpoints: [],
  }
  return {
    kind: 'found',
    row,
    endpoint: { methods: ['GET'], arguments: {} },
    pathParameters,
    path: row.template,
  }
}

export const json = (body: unknown, headers: readonly string[] = [], status = 200) => ({
  status,
  headers,
  content: Buffer.from(JSON.stringify(body)),
})

/** A stored response: where it was read, and what it showed. */
export type Read = {
  readonly found: Found | undefined
  readonly args?: TaggedArguments
  readonly body?: unknown
  readonly headers?: readonly string[]
}

export type Write = {
  readonly found: Found | undefined
  readonly method: string
  readonly response: WriteResponse | undefined
}

export const item = (collection: string, id: number | string, body: Record<string, unknown> = {}): Read => ({
  found: found(collection, 'item', { id: String(id) }),
  body: { id, ...body },
})

export const list = (
  collection: string,
  args: TaggedArguments = {},
  body: unknown = [],
  pages = '3',
): Read => ({
  found: found(collection, 'collection'),
  args: { page: 1, ...args },
  body,
  headers: ['X-WP-TotalPages', pages],
})

const tagsOf = (read: Read): ReadonlySet<string> =>
  new Set(tagger.storedTags(read.found, read.args ?? {}, json(read.body ?? {}, read.headers ?? [])))

/** Does the change behind the gateway reach the stored response? */
export const changeReaches = (change: Change, read: Read): boolean => {
  const stored = tagsOf(read)
  return tagger.changedTags([change])?.some((tag) => stored.has(tag)) ?? true
}

/** Does the write reach the stored response? */
export const reaches = (write: Write, read: Read): boolean => {
  const stored = tagsOf(read)
  return tagger
    .writtenTags(write.found, () => undefined, write.method, write.response)
    .some((tag) => stored.has(tag))
}
