import type { Call } from './call.ts'
import { SiteFault } from './site-fault.ts'
import { integer } from './values.ts'

/** One page of a list and the fields that say where it stands. */
export type Page<Item> = {
  readonly items: readonly Item[]
  readonly headers: Readonly<Record<string, string>>
}

const otherPage = (call: Call, path: string, page: number): string => {
  const kept = new URLSearchParams(call.query)
  const lists = new Map<string, number>()
  const pairs: string[] = []
  for (const [name, value] of kept) {
    if (name === 'page') continue
    const index = lists.get(name) ?? 0
    lists.set(name, index + 1)
    // WordPress numbers the members of a list when it writes its query anew.
    const written = name.endsWith('[]') ? `${name.slice(0, -2)}[${index}]` : name
    const pair = encodeURIComponent(written)
    pairs.push(value === '' ? pair : `${pair}=${encodeURIComponent(value)}`)
  }
  return `<${call.site.root}${path}?${[...pairs, `page=${page}`].join('&')}>`
}

const pageLinks = (call: Call, path: string, page: number, pages: number): string =>
  [
    ...(page > 1 && pages > 0 ? [`${otherPage(call, path, Math.min(page - 1, pages))}; rel="prev"`] : []),
    ...(page < pages ? [`${otherPage(call, path, page + 1)}; rel="next"`] : []),
  ].join(', ')

const pageBeyond = 'The page number requested is larger than the number of pages available.'

/** Cuts a page out of a list. `beyond` is the error code for a page after the last one; without it the page is empty. */
export const cutPage = <Item>(
  call: Call,
  path: string,
  all: readonly Item[],
  beyond: string | undefined,
): Page<Item> => {
  const page = integer(call.args, 'page') ?? 1
  const perPage = integer(call.args, 'per_page') ?? Math.max(all.length, 1)
  const pages = Math.ceil(all.length / perPage)
  const offset = integer(call.args, 'offset')
  if (offset === undefined && page > pages && all.length > 0 && beyond !== undefined) {
    throw new SiteFault(400, beyond, pageBeyond)
  }
  const start = offset ?? (page - 1) * perPage
  const link = pageLinks(call, path, page, pages)
  return {
    items: all.slice(start, start + perPage),
    headers: {
      'X-WP-Total': String(all.length),
      'X-WP-TotalPages': String(pages),
      ...(link === '' ? {} : { Link: link }),
    },
  }
}
