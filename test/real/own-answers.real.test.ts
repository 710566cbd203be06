import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const root = '/index.php/wp-json'
const page = { Origin: 'https://page.example' }

/** Of one message, one connection or one server. */
const ofEach = new Set([
  ...['age', 'cache-status', 'connection', 'content-length', 'date', 'etag', 'host', 'keep-alive'],
  ...['transfer-encoding', 'via', 'x-powered-by', 'x-request-id'],
])

/** What WordPress sends and the gateway does not, in its own responses. */
const absent: readonly {
  readonly reason: string
  readonly names: readonly string[]
  of(sent: Sent): boolean
}[] = [
  {
    reason: 'without an Origin no reader looks at them, and the gateway does not ask for them',
    names: ['access-control-allow-headers', 'access-control-expose-headers'],
    of: ({ headers }) => !('Origin' in headers),
  },
  {
    reason: 'the document is the same for every caller',
    names: ['cache-control', 'expires'],
    of: ({ status, isAdmin }) => status === 200 && isAdmin,
  },
  {
    reason: 'no-store says the same',
    names: ['expires'],
    of: ({ status, isAdmin }) => status === 404 && isAdmin,
  },
  {
    reason: 'what a caller may do is a decision of WordPress, except for the lists that all may read',
    names: ['allow'],
    of: ({ status, isAdmin, path }) => status === 400 && (isAdmin || /\d$/.test(path.split('?')[0] ?? '')),
  },
]

/** What the gateway sends beside that. */
const added: Readonly<Record<string, RegExp>> = {
  vary: /^(?:Origin|Accept-Encoding|, )+$/,
  'content-encoding': /^gzip$/,
  // A refusal of the gateway: nobody keeps it.
  'cache-control': /^no-store$/,
}

type Sent = {
  readonly status: number
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly isAdmin: boolean
  readonly body?: string
}

const requests: readonly (readonly [status: number, method: string, path: string, body?: string])[] = [
  [200, 'GET', '/'],
  [200, 'GET', '/wp/v2'],
  [200, 'OPTIONS', '/'],
  [200, 'OPTIONS', '/wp/v2'],
  [200, 'OPTIONS', '/batch/v1'],
  [400, 'GET', '/wp/v2/posts?per_page=0'],
  [400, 'GET', '/wp/v2/categories?per_page=0'],
  [400, 'GET', '/wp/v2/posts/4?context=x'],
  [400, 'POST', '/wp/v2/posts', '{"status":"x"}'],
  [404, 'DELETE', '/wp/v2/posts'],
  [404, 'GET', '/batch/v1'],
]

describeWith('php', 'what the gateway answers itself in front of a real WordPress', () => {
  let wordpress: WordPress
  let gateway: TestGateway

  beforeAll(async () => {
    wordpress = await startWordPress()
    gateway = await startTestGateway({
      services: {
        site: siteService(wordpress.origin, {
          mount: root,
          names: 'same',
          discovery: { source: 'upstream' },
          cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
        }),
      },
    })
    expect((await fetch(`${gateway.publicAddress}${root}/`)).status).toBe(200)
  })
  afterAll(async () => {
    await gateway?.close()
    await wordpress?.stop()
  })

  const ask = async (origin: string, { method, path, headers: headerLines, isAdmin, body }: Sent) => {
    const headers = {
      ...headerLines,
      ...(isAdmin ? { Authorization: basic(wordpress.credentials.admin) } : {}),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    }
    const response = await fetch(`${origin}${root}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    })
    await response.arrayBuffer()
    const told = [...response.headers].filter(([name]) => !ofEach.has(name))
    return {
      status: response.status,
      isOwn: response.headers.get('cache-status') === null,
      headers: new Map(
        told.map(([name, value]) => [name, value.replaceAll(gateway.publicAddress, wordpress.origin)]),
      ),
    }
  }

  /** A line for each field in which the gateway differs without a reason. */
  const unexplained = (
    sent: Sent,
    theirs: ReadonlyMap<string, string>,
    ours: ReadonlyMap<string, string>,
  ) => {
    const mayBeAbsent = absent.filter((one) => one.of(sent)).flatMap(({ names }) => names)
    return [...new Set([...theirs.keys(), ...ours.keys()])].flatMap((name) => {
      const [their, our] = [theirs.get(name), ours.get(name)]
      const isExplained =
        their === our || (our === undefined ? mayBeAbsent.includes(name) : added[name]?.test(our) === true)
      return isExplained ? [] : [`${name}: ${our}, WordPress: ${their}`]
    })
  }

  const cases = requests.flatMap(([status, method, path, body]) =>
    [{}, page].flatMap((headers) =>
      // Of an anonymous write WordPress refuses who asks, and the gateway leaves that to it.
      (body === undefined ? [false, true] : [true]).map((isAdmin): [string, Sent] => [
        `${status} ${method} ${path}${'Origin' in headers ? ', of a page elsewhere' : ''}${isAdmin ? ', as admin' : ''}`,
        { status, method, path, headers, isAdmin, ...(body === undefined ? {} : { body }) },
      ]),
    ),
  )

  test.each(cases)('%s has the header fields of WordPress', async (_title, sent) => {
    const [theirs, ours] = [await ask(wordpress.origin, sent), await ask(gateway.publicAddress, sent)]
    expect({ theirs: theirs.status, ours: ours.status }).toEqual({ theirs: sent.status, ours: sent.status })
    expect(ours.isOwn).toBe(true)
    expect(unexplained(sent, theirs.headers, ours.headers)).toEqual([])
  })
})
