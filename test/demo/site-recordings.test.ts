import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EmbeddedUpstream } from '../../demo/embedded-server.ts'
import { admin, ask, home, startSite } from './wired-upstreams.ts'

let site: EmbeddedUpstream & { readonly rest: string }
beforeAll(async () => {
  site = await startSite('wordpress')
})
afterAll(() => site.close())

type Recording = {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: unknown
}

/** Headers of the server in front of that WordPress, not of WordPress. */
const foreign = new Set(['server', 'date', 'transfer-encoding', 'connection', 'keep-alive', 'content-length'])

/** A response of a real WordPress 6.9, with its address exchanged for the embedded site's. */
const recording = (name: string): Recording => {
  const text = readFileSync(new URL(`./fixtures/recordings/${name}.http`, import.meta.url), 'utf8')
    .replaceAll('\r', '')
    .replaceAll('http://wordpress.test', home)
    .replaceAll('http:\\/\\/wordpress.test', home.replaceAll('/', '\\/'))
  const start = text.indexOf('HTTP/1.1')
  const [head = '', body = ''] = text.slice(start).split('\n\n', 2)
  const [status = '', ...lines] = head.split('\n')
  const headers = lines.map(
    (line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)] as const,
  )
  const isJson = body.trim().startsWith('{') || body.trim().startsWith('[')
  return {
    status: Number(status.split(' ')[1]),
    headers: new Map(headers.filter(([header]) => !foreign.has(header))),
    body: isJson ? JSON.parse(body) : body,
  }
}

type Request = {
  readonly method?: string
  readonly as?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

const comparableHeaders = (headers: Iterable<readonly [string, string]>) =>
  Object.fromEntries([...headers].filter(([name]) => !foreign.has(name)))

/** Requests that have the same response, whatever a site holds. */
const same: readonly (readonly [name: string, path: string, request: Request])[] = [
  [
    'anon-post-badjson',
    '/posts',
    { method: 'POST', body: '{', headers: { 'Content-Type': 'application/json' } },
  ],
  [
    'update-invalidjson',
    '/posts/5',
    { method: 'PUT', as: admin, body: '{bad', headers: { 'Content-Type': 'application/json' } },
  ],
  ['anon-put-404', '/posts/999999', { method: 'PUT', body: { title: 'x' } }],
  ['arr-assoc', '/posts?include[a]=5&_fields=id', {}],
  ['bool-yes', '/posts?sticky=yes', {}],
  ['create-anon', '/posts', { method: 'POST', body: { title: 'q' } }],
  ['create-empty', '/posts', { method: 'POST', as: admin, body: {} }],
  ['del-term-noforce', '/tags/8', { method: 'DELETE', as: admin }],
  ['draft-anon', '/posts/58', {}],
  ['envelope1', '/posts/999999?_envelope=1', {}],
  ['method-not-allowed', '/posts', { method: 'PATCH' }],
  ['method-param-get', '/posts/1?_method=DELETE&_fields=id', {}],
  ['method-override-get', '/posts/1?_fields=id', { headers: { 'X-HTTP-Method-Override': 'DELETE' } }],
  ['nonce-bad', '/posts?per_page=1', { headers: { 'X-WP-Nonce': 'bad' } }],
  ['post-404', '/posts/999999', {}],
  ['posts-beyond', '/posts?page=999', {}],
  ['posts-edit-anon', '/posts?context=edit', {}],
  ['status-draft-anon', '/posts?status=draft', {}],
  ['unknown-route', '/nope', {}],
]

/** Requests outside the content namespace, or to things that each site numbers for itself. */
test('a missing address is answered as WordPress answers it', async () => {
  const expected = recording('oembed-missing')
  const reply = await ask(`${site.rest}/oembed/1.0/embed`)
  expect([reply.status, reply.body]).toEqual([expected.status, expected.body])
})

test('even the administrator cannot delete a revision, as in WordPress', async () => {
  const expected = recording('rev-del-force')
  const { body: revisions } = await ask(`${site.rest}/wp/v2/posts/1/revisions`, { as: admin })
  const address = `${site.rest}/wp/v2/posts/1/revisions/${revisions[0].id}?force=true`
  const reply = await ask(address, { method: 'DELETE', as: admin })
  expect([reply.status, reply.body]).toEqual([expected.status, expected.body])
  expect(comparableHeaders(reply.headers)).toEqual(comparableHeaders(expected.headers))
})

const shapeOf = (value: unknown): unknown => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return value.length === 0 ? 'list' : [shapeOf(value[0])]
  if (typeof value !== 'object') return typeof value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shapeOf(part)]))
}

/** What depends on the post, not on the kind of response: which terms it has, which sizes its image. */
const shapeWithout = (value: unknown): unknown => {
  const {
    tags,
    categories,
    media_details: details,
    _links: links,
    ...rest
  } = value as Record<string, unknown>
  const {
    'wp:featuredmedia': _featured,
    'predecessor-version': _version,
    ...others
  } = (links ?? {}) as Record<string, unknown>
  return {
    ...(shapeOf(rest) as object),
    has: [tags, categories, details].map((one) => one !== undefined),
    links: shapeOf(others),
  }
}

const image = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

test.each<[name: string, path: string, request: Request]>([
  ['post-anon', '/posts/1', {}],
  ['post-edit-auth', '/posts/1?context=edit', { as: admin }],
  ['create', '/posts', { method: 'POST', as: admin, body: { title: 'C1', content: 'x', status: 'publish' } }],
  [
    'autosave-create',
    '/posts/5/autosaves',
    { method: 'POST', as: admin, body: { title: 'as', content: 'y' } },
  ],
  [
    'media-upload-raw',
    '/media',
    {
      method: 'POST',
      as: admin,
      body: image,
      headers: { 'Content-Type': 'image/png', 'Content-Disposition': 'attachment; filename="y.png"' },
    },
  ],
])('%s has the shape that WordPress 6.9 gives it', async (name, path, request) => {
  const expected = recording(name)
  const reply = await ask(`${site.rest}/wp/v2${path}`, request)
  expect(reply.status).toBe(expected.status)
  expect(shapeWithout(reply.body)).toEqual(shapeWithout(expected.body))
  expect([...reply.headers.keys()].filter((header) => !foreign.has(header)).sort()).toEqual(
    [...expected.headers.keys()].sort(),
  )
})

test.each(same)('%s is answered as WordPress answers it', async (name, path, request) => {
  const expected = recording(name)
  const reply = await ask(`${site.rest}/wp/v2${path}`, request)
  expect(reply.status).toBe(expected.status)
  expect(reply.body).toEqual(expected.body)
  expect(comparableHeaders(reply.headers)).toEqual(comparableHeaders(expected.headers))
})

/** Batches whose items have the same outcome on any site; bodies of successful items depend on the site. */
const batches = [
  'batch-mixed',
  'batch-order',
  'batch-rav-invalid',
  'batch-disallowed',
  'batch-headers',
  'batch-anon',
  'batch-26',
] as const

const requestOf = (name: string): Request => {
  const text = readFileSync(new URL(`./fixtures/recordings/${name}.http`, import.meta.url), 'utf8')
  const command = text.slice(0, text.indexOf('\n'))
  const from = command.indexOf('-d ') + 3
  const shell = command.slice(from, command.indexOf(' -X', from))
  // The command line is quoted for a shell: a backslash before each character that means something there.
  const body = shell.startsWith('@')
    ? { requests: Array.from({ length: 26 }, () => ({ path: '/wp/v2/posts', body: {} })) }
    : JSON.parse(shell.replaceAll(/\\(.)/g, '$1'))
  return { method: 'POST', body, ...(command.includes('-u admin') ? { as: admin } : {}) }
}

type Item = {
  readonly status: number
  readonly body: { code?: string }
  readonly headers: Record<string, string> | []
} | null

const outcome = (item: Item) =>
  item && {
    status: item.status,
    code: item.body.code,
    headers: Object.keys(item.headers),
    allow: Array.isArray(item.headers) ? undefined : item.headers['Allow'],
  }

/** Routes that the embedded site does not have. */
const absent = new Set(['batch-disallowed 1'])

test.each(batches)('%s has the outcomes that WordPress gives, item by item', async (name) => {
  const expected = recording(name)
  const reply = await ask(`${site.rest}/batch/v1`, requestOf(name))
  expect(reply.status).toBe(expected.status)
  const wanted = expected.body as { responses?: Item[]; failed?: string }
  expect(reply.body.failed).toBe(wanted.failed)
  const found = (reply.body.responses ?? []) as Item[]
  expect(found.length).toBe((wanted.responses ?? []).length)
  for (const [index, item] of found.entries()) {
    if (absent.has(`${name} ${index}`)) continue
    expect(outcome(item), `item ${index}`).toEqual(outcome(wanted.responses?.[index] ?? null))
  }
  if (wanted.responses === undefined) expect(reply.body).toEqual(expected.body)
})

test('a contact form is answered as Contact Form 7 answers it', async () => {
  const { body: forms } = await ask(`${site.rest}/contact-form-7/v1/contact-forms`, { as: admin })
  const form = new FormData()
  const filled = {
    'your-name': 'a',
    'your-email': 'bad',
    'your-subject': 's',
    _wpcf7_unit_tag: 'wpcf7-f4-o1',
  }
  for (const [name, value] of Object.entries(filled)) form.append(name, value)
  const address = `${site.rest}/contact-form-7/v1/contact-forms/${forms[0].id}/feedback`
  const reply = await ask(address, { method: 'POST', body: form })
  const expected = recording('cf-feedback-multi')
  expect(reply.status).toBe(expected.status)
  expect(reply.body).toEqual({ ...(expected.body as object), contact_form_id: forms[0].id })
  expect((await ask(address, { method: 'POST', body: {} })).status).toBe(415)
})

test('HEAD has the headers of GET without Vary, and no content', async () => {
  const expected = recording('head-posts')
  const reply = await ask(`${site.rest}/wp/v2/posts`, { method: 'HEAD' })
  expect(reply.text).toBe('')
  expect([...reply.headers.keys()].filter((name) => !foreign.has(name)).sort()).toEqual(
    [...expected.headers.keys()].sort(),
  )
})
