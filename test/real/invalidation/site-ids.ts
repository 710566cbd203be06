import { basic } from '../site-under-test.ts'
import type { WordPress } from '../wordpress/start-wordpress.ts'

/** What the matrix calls things, and their ids on this site. */
export type Ids = Map<string, number | string>

type Item = {
  readonly id: number | string
  readonly object?: string
  readonly object_id?: number
  readonly categories?: readonly number[]
  readonly tags?: readonly number[]
}

/** Looks up what the writes and probes of the matrix are about. */
export const idsOfSite = async ({ restRoot, credentials }: WordPress): Promise<Ids> => {
  const list = async (path: string): Promise<readonly Item[]> => {
    const headers = { authorization: basic(credentials.admin) }
    const response = await fetch(`${restRoot}/wp/v2/${path}`, { headers })
    if (!response.ok) throw new Error(`${path}: ${response.status}`)
    return (await response.json()) as readonly Item[]
  }
  const first = async (path: string): Promise<number | string> => {
    const [item] = await list(path)
    if (item === undefined) throw new Error(`${path}: nothing there`)
    return item.id
  }
  const linkedByMenu = async (kind: string): Promise<number> => {
    const items = await list('menu-items?per_page=100')
    return items.find(({ object }) => object === kind)?.object_id ?? 0
  }
  const [p, q] = await list('posts?order=asc&per_page=2')
  const guides = p?.categories?.[0] ?? 0
  const [news, unrelated] = (await list('categories?per_page=20')).filter(
    ({ id }) => id !== guides && id !== 1,
  )
  const menuPage = await linkedByMenu('page')
  const pages = await list('pages?orderby=menu_order&order=asc')
  const [theme] = (await list('themes?status=active')) as unknown as readonly {
    stylesheet: string
    _links: Record<string, readonly { href: string }[]>
  }[]
  const styles = theme?._links['wp:user-global-styles']?.[0]?.href ?? ''
  return new Map<string, number | string>([
    ['P', p?.id ?? 0],
    ['Q', q?.id ?? 0],
    ['guides', guides],
    ['news', news?.id ?? 0],
    ['unrelated', unrelated?.id ?? 0],
    ['tag', p?.tags?.[0] ?? 0],
    ['otherMedia', await first('media')],
    ['otherUser', await first('users?roles=author')],
    ['subscriber', await first('users?roles=subscriber')],
    ['menuPage', menuPage],
    ['page', pages.find(({ id }) => id !== menuPage)?.id ?? 0],
    ['menuItem', await first('menu-items')],
    ['menu', await first('menus')],
    ['menuCategory', await linkedByMenu('category')],
    ['block', await first('blocks')],
    ['navigation', await first('navigation')],
    ['template', `${theme?.stylesheet ?? ''}//single`],
    ['globalStyles', styles.slice(styles.lastIndexOf('/') + 1)],
  ])
}
