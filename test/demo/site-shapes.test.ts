import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EmbeddedUpstream } from '../../demo/embedded-server.ts'
import { admin, ask, home, startSite } from './wired-upstreams.ts'

/**
 * The shapes (names and types, first member of each list) of responses that a WordPress 6.7 gave to these requests.
 * Placeholders stand for identifiers that differ between two sites.
 */
type ShapeCase = {
  readonly as: string
  readonly label: string
  readonly path: string
  readonly shape: unknown
}

const cases: readonly ShapeCase[] = JSON.parse(
  readFileSync(new URL('./fixtures/wordpress-shapes.json', import.meta.url), 'utf8'),
)

let site: EmbeddedUpstream & { readonly rest: string }
let ids: Readonly<Record<string, string>>

beforeAll(async () => {
  site = await startSite('wordpress')
  const first = async (path: string): Promise<string> => {
    const { body } = await ask(`${site.rest}/wp/v2/${path}per_page=1&orderby=id&order=asc`, { as: admin })
    return String(body[0].id)
  }
  const themes = await ask(`${site.rest}/wp/v2/themes`, { as: admin })
  const childPage = await ask(`${site.rest}/wp/v2/pages?parent_exclude=0&orderby=id&order=asc`)
  ids = {
    home,
    slug: 'post-number-1',
    theme: 'twentytwentyfive',
    post: '1',
    page: String(childPage.body[0].id),
    media: await first('media?'),
    item: await first('menu-items?'),
    block: await first('blocks?'),
    nav: await first('navigation?'),
    styles: themes.body[0]._links['wp:user-global-styles'][0].href.split('/').at(-1),
  }
  for (const part of ['revisions', 'autosaves']) {
    if (part === 'autosaves') {
      await ask(`${site.rest}/wp/v2/pages/${ids['page']}/autosaves`, {
        method: 'POST',
        as: admin,
        body: { title: 'a' },
      })
    } else {
      await ask(`${site.rest}/wp/v2/pages/${ids['page']}`, { method: 'PUT', as: admin, body: { title: 'a' } })
    }
  }
})

afterAll(() => site.close())

/** What may differ, and why. */
const differing: Readonly<Record<string, string>> = {
  targetHints: 'added by WordPress 6.9',
  page_for_posts: 'added by WordPress 6.9',
  page_on_front: 'added by WordPress 6.9',
  show_on_front: 'added by WordPress 6.9',
  sizes: 'depend on the image and the theme',
  capabilities: 'dozens of rights that nothing here asks for',
  persisted_preferences: 'of the editor',
  tags: 'the first post of a new WordPress has none',
}

const comparable = (shape: unknown): unknown => {
  if (Array.isArray(shape)) return shape.map(comparable)
  if (shape === null || typeof shape !== 'object') return shape
  const entries = Object.entries(shape).filter(([name]) => differing[name] === undefined)
  return Object.fromEntries(entries.map(([name, part]) => [name, comparable(part)]))
}

const shapeOf = (value: unknown): unknown => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])]
  if (typeof value !== 'object') return typeof value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shapeOf(part)]))
}

test.each(cases.map((one) => [one.as, one.label, one] as const))('%s: %s', async (_as, _label, one) => {
  const path = Object.entries(ids).reduce((text, [name, id]) => text.replaceAll(`{${name}}`, id), one.path)
  const reply = await ask(site.rest + path, one.as === 'admin' ? { as: admin } : {})
  expect(reply.status).toBe(200)
  expect(comparable(shapeOf(reply.body))).toEqual(comparable(one.shape))
})
