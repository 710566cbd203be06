import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedUpstream } from '../../demo/embedded-server.ts'
import { siteRows } from '../../src/wordpress/routes/route-table.ts'
import { admin, ask, type Reply, startSite } from '../demo/wired-upstreams.ts'

type Site = EmbeddedUpstream & { readonly rest: string }

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const theme = 'twentytwentyfive'

/** What each row is asked, and what must be in the response. `path` replaces the row's template where it has parameters. */
type Probe = {
  readonly path?: string
  readonly query?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly status: number
  /** Names that the body, or the first member of a list, must have; a string is looked for in the text. */
  readonly has: readonly string[]
}

/** Identifiers that only the running site knows. */
type Ids = Readonly<
  Record<'page' | 'media' | 'item' | 'block' | 'styles' | 'form' | 'revision' | 'source', string>
>

const item = ['id', 'title', '_links']
const version = ['id', 'parent', 'title', '_links']
const template = ['id', 'theme', 'content', 'source', '_links']
const deleted = ['deleted', 'previous']

const idsOf = async (site: Site, content: string): Promise<Ids> => {
  const first = async (path: string): Promise<Record<string, unknown>> => {
    const { body } = await ask(`${site.rest}/${path}`, { as: admin })
    return body[0]
  }
  const one = async (name: string) => String((await first(`${content}/${name}?per_page=1`))['id'])
  const themes = await first(`${content}/themes`)
  const links = themes['_links'] as Record<string, { href: string }[]>
  const media = await first(`${content}/media`)
  return {
    page: '61',
    media: String(media['id']),
    source: String(media['source_url']),
    item: await one('menu-items'),
    block: String((await first(`${content}/blocks?orderby=id&order=asc`))['id']),
    styles: links['wp:user-global-styles']?.[0]?.href.split('/').at(-1) ?? '',
    form: String(
      (await first(`${content === 'wp/v2' ? 'contact-form-7/v1' : 'contact-form/v1'}/contact-forms`))['id'],
    ),
    revision: '0',
  }
}

const newest = async (site: Site, path: string, id = 'id'): Promise<string> => {
  const { body } = await ask(site.rest + path, { as: admin })
  return String(body[0][id])
}

/** Every method of every row of the contract, in the order in which they are asked. */
const probes = async (site: Site, content: string, forms: string, templateId: string) => {
  const ids = await idsOf(site, content)
  const base = `/${content}`
  const table: Record<string, Probe> = {
    'index GET': { status: 200, has: ['name', 'namespaces', 'authentication', 'routes'] },
    'batch POST': { body: { requests: [] }, status: 207, has: ['responses'] },
    'oembed.index GET': { status: 200, has: ['namespace', 'routes'] },
    'oembed.embed GET': {
      query: '?url=http://site.test/index.php/post-number-40/',
      status: 200,
      has: ['html', 'title'],
    },
    'oembed.proxy GET': {
      query: '?url=http://site.test/index.php/post-number-40/',
      status: 200,
      has: ['html'],
    },
    'contact-form.index GET': { status: 200, has: ['namespace', 'routes'] },
    'site.index GET': { status: 200, has: ['namespace', 'routes'] },
    'contact-forms.collection GET': { status: 200, has: ['id', 'slug', 'title', 'locale'] },
    'contact-forms.collection POST': { body: { title: 'New' }, status: 200, has: ['id', 'properties'] },
    'media.collection GET': { status: 200, has: ['id', 'source_url', 'media_details'] },
    'media.collection POST': {
      body: png,
      headers: { 'Content-Type': 'image/png', 'Content-Disposition': 'attachment; filename="dot.png"' },
      status: 201,
      has: ['id', 'source_url', 'missing_image_sizes'],
    },
    'media.post-process POST': {
      path: `${base}/media/${ids.media}/post-process`,
      body: { action: 'create-image-subsizes' },
      status: 200,
      has: ['id', 'media_details'],
    },
    'media.edit POST': {
      path: `${base}/media/${ids.media}/edit`,
      body: { src: ids.source, modifiers: [{ type: 'rotate', args: { angle: 90 } }] },
      status: 201,
      has: ['id', 'source_url'],
    },
    'templates.lookup GET': { query: '?slug=single-post', status: 200, has: template },
    'template-parts.lookup GET': { query: '?slug=header', status: 200, has: template },
    'global-styles.variations GET': {
      path: `${base}/global-styles/themes/${theme}/variations`,
      status: 200,
      has: ['title', 'settings'],
    },
    'global-styles.theme GET': {
      path: `${base}/global-styles/themes/${theme}`,
      status: 200,
      has: ['settings', 'styles'],
    },
    'navigation.collection GET': { status: 200, has: [...item, 'content'] },
    'navigation.collection POST': {
      body: { title: 'Side', content: '<!-- wp:page-list /-->', status: 'publish' },
      status: 201,
      has: item,
    },
  }
  const form = `/${forms}/contact-forms/${ids.form}`
  Object.assign(table, {
    'contact-forms.item GET': { path: form, status: 200, has: ['id', 'properties'] },
    'contact-forms.item POST': { path: form, body: { title: 'A' }, status: 200, has: ['id', 'properties'] },
    'contact-forms.item PUT': { path: form, body: { title: 'B' }, status: 200, has: ['id', 'properties'] },
    'contact-forms.item PATCH': { path: form, body: { title: 'C' }, status: 200, has: ['id', 'properties'] },
    'contact-forms.feedback POST': {
      path: `${form}/feedback`,
      body: new URLSearchParams({
        _wpcf7_unit_tag: `wpcf7-f${ids.form}-o1`,
        'your-name': 'a',
        'your-email': 'bad',
        'your-subject': 's',
      }).toString(),
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      status: 200,
      has: ['contact_form_id', 'status', 'message', 'invalid_fields', 'posted_data_hash', 'into'],
    },
    'contact-forms.feedback-schema GET': {
      path: `${form}/feedback/schema`,
      status: 200,
      has: ['version', 'rules'],
    },
    'contact-forms.refill GET': { path: `${form}/refill`, status: 200, has: [] },
    'contact-forms.item DELETE': { path: form, status: 200, has: ['deleted'] },
  } satisfies Record<string, Probe>)

  for (const [name, id] of [
    ['posts', '1'],
    ['pages', ids.page],
    ['blocks', ids.block],
    ['menu-items', ids.item],
  ] as const) {
    const own = `${base}/${name}/${id}`
    const created =
      name === 'menu-items' ? { title: 'T', url: 'https://example.org/' } : { title: 'T', status: 'publish' }
    const autosave = {
      path: `${own}/autosaves/${await newest(site, `${own}/autosaves`)}`,
      status: 200,
      has: version,
    }
    Object.assign(table, {
      [`${name}.collection GET`]: { status: 200, has: item },
      [`${name}.collection POST`]: { body: created, status: 201, has: item },
      [`${name}.item GET`]: { path: own, status: 200, has: item },
      [`${name}.item POST`]: { path: own, body: { title: 'a' }, status: 200, has: item },
      [`${name}.item PUT`]: { path: own, body: { title: 'b' }, status: 200, has: item },
      [`${name}.item PATCH`]: { path: own, body: { title: 'c' }, status: 200, has: item },
      [`${name}.autosaves GET`]: { path: `${own}/autosaves`, status: 200, has: version },
      [`${name}.autosaves POST`]: {
        path: `${own}/autosaves`,
        body: { title: 'x' },
        status: 200,
        has: [...version, 'preview_link'],
      },
      [`${name}.autosave GET`]: autosave,
    } satisfies Record<string, Probe>)
    if (name === 'menu-items') continue
    const revision = `${own}/revisions/${await newest(site, `${own}/revisions`)}`
    Object.assign(table, {
      [`${name}.revisions GET`]: { path: `${own}/revisions`, status: 200, has: version },
      [`${name}.revision GET`]: { path: revision, status: 200, has: version },
      [`${name}.revision DELETE`]: {
        path: revision,
        query: '?force=true',
        status: 403,
        has: ['code', 'message', 'data'],
      },
    } satisfies Record<string, Probe>)
  }
  for (const [name, slug] of [
    ['templates', 'home'],
    ['template-parts', 'footer'],
  ] as const) {
    const own = `${base}/${name}/${theme}//${slug}`
    const revision = `${own}/revisions/${await newest(site, `${own}/revisions`, templateId)}`
    const autosave = `${own}/autosaves/${await newest(site, `${own}/autosaves`, templateId)}`
    Object.assign(table, {
      [`${name}.revisions GET`]: { path: `${own}/revisions`, status: 200, has: [...template, 'parent'] },
      [`${name}.revision GET`]: { path: revision, status: 200, has: [...template, 'parent'] },
      [`${name}.revision DELETE`]: { path: revision, query: '?force=true', status: 403, has: ['code'] },
      [`${name}.autosaves GET`]: { path: `${own}/autosaves`, status: 200, has: [...template, 'parent'] },
      [`${name}.autosaves POST`]: {
        path: `${own}/autosaves`,
        body: { content: 'x' },
        status: 200,
        has: template,
      },
      [`${name}.autosave GET`]: { path: autosave, status: 200, has: [...template, 'parent'] },
      [`${name}.collection GET`]: { status: 200, has: template },
      [`${name}.collection POST`]: { body: { slug: 'mine', title: 'Mine' }, status: 201, has: template },
      [`${name}.item GET`]: { path: own, status: 200, has: template },
      [`${name}.item POST`]: { path: own, body: { content: 'a' }, status: 200, has: template },
      [`${name}.item PUT`]: { path: own, body: { content: 'b' }, status: 200, has: template },
      [`${name}.item PATCH`]: { path: own, body: { content: 'c' }, status: 200, has: template },
      [`${name}.item DELETE`]: { path: own, query: '?force=true', status: 200, has: deleted },
    } satisfies Record<string, Probe>)
  }
  const styles = `${base}/global-styles/${ids.styles}`
  const media = `${base}/media/${ids.media}`
  Object.assign(table, {
    'global-styles.revisions GET': {
      path: `${styles}/revisions`,
      status: 200,
      has: ['id', 'parent', 'styles', 'settings'],
    },
    'global-styles.revision GET': {
      path: `${styles}/revisions/${await newest(site, `${styles}/revisions`)}`,
      status: 200,
      has: ['id', 'styles'],
    },
    'global-styles.item GET': {
      path: styles,
      status: 200,
      has: ['id', 'title', 'settings', 'styles', '_links'],
    },
    'global-styles.item POST': { path: styles, body: { title: 'a' }, status: 200, has: ['id', 'styles'] },
    'global-styles.item PUT': { path: styles, body: { title: 'b' }, status: 200, has: ['id', 'styles'] },
    'global-styles.item PATCH': { path: styles, body: { title: 'c' }, status: 200, has: ['id', 'styles'] },
    'media.item GET': { path: media, status: 200, has: [...item, 'source_url'] },
    'media.item POST': { path: media, body: { alt_text: 'a' }, status: 200, has: [...item, 'source_url'] },
    'media.item PUT': { path: media, body: { alt_text: 'b' }, status: 200, has: [...item, 'source_url'] },
    'media.item PATCH': { path: media, body: { alt_text: 'c' }, status: 200, has: [...item, 'source_url'] },
    'media.item DELETE': { path: media, query: '?force=true', status: 200, has: deleted },
    'posts.item DELETE': { path: `${base}/posts/1`, status: 200, has: item },
    'pages.item DELETE': { path: `${base}/pages/${ids.page}`, status: 200, has: item },
    'blocks.item DELETE': { path: `${base}/blocks/${ids.block}`, status: 200, has: item },
    'menu-items.item DELETE': {
      path: `${base}/menu-items/${ids.item}`,
      query: '?force=true',
      status: 200,
      has: deleted,
    },
  } satisfies Record<string, Probe>)
  return table
}

const endpoints = siteRows.flatMap((row) =>
  row.endpoints.flatMap((endpoint) =>
    endpoint.methods.map((method) => ({ name: `${row.id} ${method}`, row, method })),
  ),
)

describe.each([
  ['wordpress', 'wp/v2', 'contact-form-7/v1', 'wp_id'],
  ['neutral', 'site/v2', 'contact-form/v1', 'site_id'],
] as const)('the embedded site in its %s dialect', (dialect, content, forms, templateId) => {
  let site: Site
  let table: Readonly<Record<string, Probe>>

  beforeAll(async () => {
    site = await startSite(dialect)
    table = await probes(site, content, forms, templateId)
  })
  afterAll(() => site.close())

  test('is asked every endpoint of the contract and nothing else', () => {
    expect(Object.keys(table).sort()).toEqual(endpoints.map(({ name }) => name).sort())
  })

  // Deletions come last, so that they take nothing away from the others.
  const ordered = [
    ...endpoints.filter(({ method }) => method !== 'DELETE'),
    ...endpoints.filter(({ method }) => method === 'DELETE'),
  ]

  test.each(ordered.map((one) => [one.name, one] as const))('%s', async (name, { row, method }) => {
    const probe = table[name] as Probe
    const template = row.template.replace('site/v2', content).replace('contact-form/v1', forms)
    const address = site.rest + (probe.path ?? template) + (probe.query ?? '')
    const { body, headers = {} } = probe
    const reply: Reply = await ask(address, {
      method,
      as: admin,
      headers,
      ...(body === undefined ? {} : { body }),
    })
    expect(reply.status, reply.text.slice(0, 300)).toBe(probe.status)
    const shown = Array.isArray(reply.body) && probe.has.length > 0 ? reply.body[0] : reply.body
    for (const key of probe.has) expect(shown).toHaveProperty([key])
    expect(reply.headers.get('content-type')).toBe('application/json; charset=UTF-8')
    expect(reply.headers.get('cache-control')).toContain('no-store')
  })
})
