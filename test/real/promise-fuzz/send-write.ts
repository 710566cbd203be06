import { basic } from '../site-under-test.ts'
import type { FuzzedSite } from './site-under-fuzz.ts'
import type { Created, Operation, Write, XmlValue } from './write.ts'
import { resolved } from './write.ts'

/** What came of a write; `created`: the id of what it made; `text`: the content of the response. */
export type Outcome = { readonly status: number; readonly created: string | undefined; readonly text: string }

const image = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** Until a scheduled post is due. */
const dueMs = 2_000

const soon = (): string => new Date(Date.now() + dueMs).toISOString().slice(0, 19)

/** Digits alone stand for a number, as clients write ids. */
const json = (value: unknown): string => JSON.stringify(value).replace(/"(\d+)"(?!:)/g, '$1')

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const xmlOf = (value: XmlValue): string => {
  if (typeof value === 'string') return `<value><string>${escaped(value)}</string></value>`
  if (typeof value === 'number') return `<value><int>${value}</int></value>`
  if (typeof value === 'boolean') return `<value><boolean>${value ? 1 : 0}</boolean></value>`
  if (Array.isArray(value)) return `<value><array><data>${value.map(xmlOf).join('')}</data></array></value>`
  const members = Object.entries(value).map(
    ([name, one]) => `<member><name>${name}</name>${xmlOf(one)}</member>`,
  )
  return `<value><struct>${members.join('')}</struct></value>`
}

const formOf = (body: Readonly<Record<string, unknown>>): URLSearchParams =>
  new URLSearchParams(Object.entries(body).map(([name, value]): [string, string] => [name, String(value)]))

const withQuery = (route: string, query: string): string =>
  `${route}${route.includes('?') ? '&' : '?'}${query}`

type Request = { readonly url: string; readonly init: RequestInit }

/** One operation in one of the spellings that WordPress takes. */
const restRequest = (
  site: FuzzedSite,
  { operation: { method, route, body }, style, by }: Extract<Write, { door: 'rest' }>,
): Request => {
  const target = site.restRoot + site.spelled(route)
  const content = body === undefined ? {} : { body: site.spelled(json(body)) }
  const headers: Record<string, string> = {
    authorization: basic(site.wordpress.credentials[by ?? 'admin']),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  }
  const { 'content-type': _, ...plain } = headers
  switch (style) {
    case 'json':
      return { url: target, init: { method, headers, ...content } }
    case 'form':
      return { url: target, init: { method, headers: plain, body: formOf(body ?? {}) } }
    case 'query':
      return { url: withQuery(target, formOf(body ?? {}).toString()), init: { method, headers: plain } }
    case 'override field':
      return {
        url: target,
        init: { method: 'POST', headers: { ...headers, 'x-http-method-override': method }, ...content },
      }
    case 'override parameter':
      return { url: withQuery(target, `_method=${method}`), init: { method: 'POST', headers, ...content } }
    case 'fields':
      return { url: withQuery(target, '_fields=id'), init: { method, headers, ...content } }
    case 'rest_route': {
      const [path = '', query = ''] = route.split('?')
      // Not the interface of the gateway: the pages' service passes it on as it is, in WordPress's own names.
      const url = `${site.gateway.publicAddress}/?rest_route=${encodeURIComponent(path)}${query === '' ? '' : `&${query}`}`
      const own = body === undefined ? {} : { body: json(body) }
      return { url, init: { method, headers, ...own } }
    }
  }
}

const batchRequest = (site: FuzzedSite, operations: readonly Operation[]): Request => ({
  url: `${site.restRoot}/batch/v1`,
  init: {
    method: 'POST',
    headers: {
      authorization: basic(site.wordpress.credentials.admin),
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      requests: operations.map(({ method, route, body }) => ({
        method,
        path: site.spelled(route),
        ...(body === undefined ? {} : { body: JSON.parse(site.spelled(json(body))) }),
      })),
    }),
  },
})

const requestOf = (site: FuzzedSite, write: Write): Request => {
  const origin = site.gateway.publicAddress
  const authorization = basic(site.wordpress.credentials.admin)
  switch (write.door) {
    case 'rest':
      return restRequest(site, write)
    case 'batch':
      return batchRequest(site, write.operations)
    case 'upload':
      return {
        url: site.restRoot + site.spelled(write.route),
        init: {
          method: 'POST',
          headers: {
            authorization,
            'content-type': 'image/png',
            'content-disposition': `attachment; filename="${write.file}"`,
          },
          body: image,
        },
      }
    case 'form': {
      const nonces = Object.entries(write.nonces ?? {}).map(([header, action]) => [
        header,
        site.nonce(action),
      ])
      const headerLines = new URLSearchParams({ ...write.headers, ...Object.fromEntries(nonces) })
      const headers = { cookie: site.cookies, referer: `${site.wordpress.origin}/wp-admin/edit.php` }
      return write.method === 'GET'
        ? { url: `${origin}${write.path}?${headerLines}`, init: { headers } }
        : { url: origin + write.path, init: { method: 'POST', headers, body: headerLines } }
    }
    case 'xmlrpc': {
      const { username, password } = site.wordpress.credentials.admin
      const values = [1, username, password, ...write.values].map((value) => `<param>${xmlOf(value)}</param>`)
      const body = `<?xml version="1.0"?><methodCall><methodName>${write.call}</methodName><params>${values.join('')}</params></methodCall>`
      return {
        url: `${origin}/xmlrpc.php`,
        init: { method: 'POST', headers: { 'content-type': 'text/xml' }, body },
      }
    }
    case 'raw': {
      const headers = { cookie: site.cookies, 'content-type': write.type }
      // Where such requests are named, no plugin may write in all of them.
      const body = write.body
        .replace('{heartbeat-nonce}', site.nonce('heartbeat-nonce'))
        .replace('acme-always', site.namesWrites ? 'acme' : 'acme-always')
      // A login needs the cookie that tests for cookies only, and a login of nobody.
      const sent = write.path === '/wp-login.php' ? { 'content-type': write.type } : headers
      return { url: origin + write.path, init: { method: 'POST', headers: sent, body } }
    }
    case 'cron':
      return { url: `${origin}/wp-cron.php`, init: {} }
  }
}

const numberIn = (text: string): string | undefined => /\d+/.exec(text)?.[0]

const createdBy = (write: Write, text: string): string | undefined => {
  if (write.door === 'xmlrpc')
    return write.call === 'wp.newPost' ? numberIn(text.slice(text.indexOf('<string>'))) : undefined
  if (write.door === 'form') return /<term_id>(?:<!\[CDATA\[)?(\d+)/.exec(text)?.[1]
  try {
    const response = JSON.parse(text)
    const item = write.door === 'batch' ? response.responses?.[0]?.body : response
    return item?.id === undefined ? undefined : String(item.id)
  } catch {
    return undefined
  }
}

/** `soon` when it is sent. */
const dated = (write: Write): Write =>
  write.kind === 'schedule'
    ? (JSON.parse(JSON.stringify(write).replaceAll('"soon"', `"${soon()}"`)) as Write)
    : write

/** Every second write, the same ones each time that it is repeated. */
const isBypassing = ({ name }: Write): boolean => Number(/\d+/.exec(name)?.[0] ?? 0) % 2 === 0

/** The same site for a client that speaks to WordPress itself. */
const besideGateway = (site: FuzzedSite, origin: string): FuzzedSite => ({
  ...site,
  gateway: { ...site.gateway, publicAddress: origin },
  restRoot: site.wordpress.restRoot,
  spelled: (text) => text,
})

/** When tasks were last run through the gateway of a site. */
const tasksRunAt = new WeakMap<FuzzedSite, number>()

/** Two minutes: runs that are asked for within a minute of another one are dropped at its end, or at that of the next one. */
const followedMs = 120_000

/** The first run drops at once what it writes. Without the companion a further one may not, so the site is as if it had ended. */
const endTasks = async (site: FuzzedSite): Promise<void> => {
  if (site.bypass !== undefined) return
  const now = performance.now()
  const isFollowed = now - (tasksRunAt.get(site) ?? Number.NEGATIVE_INFINITY) < followedMs
  tasksRunAt.set(site, now)
  if (isFollowed) await site.purge()
}

/** Sends a write, through the gateway unless it bypasses it; undefined when it is about something that was never created. */
export const sendWrite = async (
  site: FuzzedSite,
  write: Write,
  created: Created,
): Promise<Outcome | undefined> => {
  const ready = resolved(dated(write), created)
  if (ready === undefined) return undefined
  if (ready.door === 'cron') await new Promise((resolve) => setTimeout(resolve, dueMs + 500))
  const bypass = isBypassing(write) ? site.bypass : undefined
  const { url, init } = requestOf(bypass === undefined ? site : besideGateway(site, bypass.origin), ready)
  const response = await fetch(url, { ...init, redirect: 'manual' })
  const text = await response.text()
  await bypass?.reported()
  if (ready.door === 'cron') await endTasks(site)
  const id = response.status < 400 ? createdBy(ready, text) : undefined
  if (id !== undefined) created.set(write.name, id)
  return { status: response.status, created: id, text }
}
