import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowsOf, times } from '../support/breadth.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

// The same POSTs, directly to one copy of a site and through the gateway to another: what names a method, by the type of the content,
// by the kind of route.

const overrides: readonly (readonly [header: string, parameter: string])[] = [
  ...['', 'PUT', 'patch', 'DELETE'].map((method) => [method, ''] as const),
  ...['put', 'PATCH', 'DELETE'].map((method) => ['', method] as const),
  ['DELETE', 'PUT'],
]

const boundary = 'matrix'
const part = (disposition: string, content: string): string =>
  `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`

const contents: Readonly<Record<string, (number: number) => readonly [type: string, content: string]>> = {
  none: () => ['', ''],
  json: (number) => ['application/json', JSON.stringify({ title: `t${number}`, slug: `s-${number}` })],
  urlencoded: (number) => [
    'application/x-www-form-urlencoded',
    `title=t+${number}&slug=s-${number}&_method=DELETE`,
  ],
  multipart: (number) => [
    `multipart/form-data; boundary=${boundary}`,
    `${part('name="title"', `t${number}`)}${part('name="_method"', 'DELETE')}--${boundary}--\r\n`,
  ],
  file: (number) => [
    `multipart/form-data; boundary="${boundary}"`,
    `${part('name="title"', `t${number}`)}${part('name="file"; filename="rest_route.txt"\r\nContent-Type: text/plain', 'x'.repeat(20_000))}--${boundary}--\r\n`,
  ],
}

const routes: Readonly<Record<string, (number: number) => string>> = {
  post: (number) => `/wp/v2/posts/${11 + (number % 8)}?_fields=id,title,slug,status`,
  media: (number) => `/wp/v2/media/${121 + (number % 4)}?_fields=id,title,slug`,
  learned: (number) => `/request-echo/v1/things/${number}`,
  unlisted: (number) => `/request-echo-hidden/v1/things/${number}`,
}

type Case = { readonly title: string; readonly target: string; readonly init: RequestInit }

const caseOf = (route: string, type: string, number: number): Case => {
  const [header, parameter] = overrides[number % overrides.length] as (typeof overrides)[number]
  const [contentType, content] = (contents[type] as (typeof contents)[string])(number)
  const path = (routes[route] as (typeof routes)[string])(number)
  const separator = path.includes('?') ? '&' : '?'
  return {
    title: `${route}, ${type}, header ${header || 'none'}, parameter ${parameter || 'none'}`,
    target: parameter === '' ? path : `${path}${separator}_method=${parameter}`,
    init: {
      method: 'POST',
      headers: {
        ...(contentType === '' ? {} : { 'Content-Type': contentType }),
        ...(header === '' ? {} : { 'X-HTTP-Method-Override': header }),
      },
      ...(content === '' ? {} : { body: content }),
    },
  }
}

/** 200 of each kind of route in a long run, 8 in a short one. */
const rounds = times(1, 5)

const allCases = Object.keys(routes).flatMap((route) =>
  Object.keys(contents).flatMap((type) =>
    Array.from({ length: rounds * overrides.length }, (_, number) => caseOf(route, type, number)),
  ),
)

const responseOf = async (root: string, { target, init }: Case, wordpress: WordPress) => {
  const headers = { ...init.headers, Authorization: basic(wordpress.credentials.admin) }
  const response = await fetch(root + target, { ...init, headers })
  const text = await response.text()
  return { status: response.status, content: text.replaceAll(/http:\/\/127\.0\.0\.1:\d+[\w/.-]*/g, '') }
}

const cases = rowsOf(allCases, 5)

describeWith('php', 'a POST that names another method does at a site what it does without a gateway', () => {
  let direct: WordPress
  let behind: WordPress
  let gateway: TestGateway
  let root: string

  beforeAll(async () => {
    direct = await startWordPress({ plugins: ['request-echo'] })
    behind = await startWordPress({ plugins: ['request-echo'] })
    gateway = await startTestGateway({
      services: {
        site: {
          contract: 'site',
          mount: '/wp-json',
          names: 'same',
          upstream: { targets: [behind.origin], basePath: '/index.php/wp-json' },
          cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
        },
      },
    })
    root = `${gateway.publicAddress}/wp-json`
  })
  afterAll(async () => {
    await gateway?.close()
    await direct?.stop()
    await behind?.stop()
  })

  test(`${cases.length} requests: same status, same content`, async () => {
    await expect.poll(async () => (await fetch(`${root}/`)).status).toBe(200)
    const differences: unknown[] = []
    for (const one of cases) {
      const [expected, response] = await Promise.all([
        responseOf(direct.restRoot, one, direct),
        responseOf(root, one, behind),
      ])
      if (expected.status !== response.status || expected.content !== response.content)
        differences.push({ case: one.title, expected, answer: response })
    }
    expect(differences).toEqual([])
    process.stdout.write(`method overrides: ${cases.length} requests, ${differences.length} differences\n`)
  }, 600_000)

  test.each([
    '/request-echo/v1/seen',
    '/request-echo-hidden/v1/seen',
    '/wp/v2/posts?per_page=100&orderby=id&_fields=id,slug,status,title',
    '/wp/v2/media?per_page=100&orderby=id&_fields=id,slug,title',
  ])('the same is left behind: %s', async (target) => {
    const read = { title: '', target, init: {} }
    const left = await responseOf(root, read, behind)
    expect(left).toEqual(await responseOf(direct.restRoot, read, direct))
    expect(left.status).toBe(200)
  })
})
