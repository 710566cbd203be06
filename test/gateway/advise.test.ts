import { afterEach, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Script, startOrigin } from '../support/origin.ts'

const opened: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})

type Tree = { readonly [key: string]: unknown }
type Advice = {
  readonly route: string
  readonly reason: string
  readonly yaml?: string
  readonly share?: number
}

const posts = '/index.php/site-json/site/v2/posts'
const rules = [{ match: 'GET /site/v2/**', ttl: '1m' }]
const plain = { 'Content-Type': 'application/json' }

const start = async (cache: Tree, headers: Readonly<Record<string, string>>, script?: Script) => {
  const origin = await startOrigin(script ?? ((_, wire) => wire.respond({ headers, content: '[]' })))
  const gateway = await startTestGateway({ services: { blog: siteService(origin.origin, { cache }) } })
  opened.push(origin, { close: () => gateway.close() })
  return gateway
}

const adviceOf = async ({ adminAddress }: TestGateway): Promise<readonly Advice[]> => {
  const report = (await (await fetch(`${adminAddress}/status`)).json()) as {
    readonly advice: readonly Advice[]
  }
  return report.advice
}

const read = async (
  { publicAddress }: TestGateway,
  headers: Readonly<Record<string, string>> = {},
  path = posts,
): Promise<string> => {
  const response = await fetch(publicAddress + path, { headers })
  await response.arrayBuffer()
  return response.headers.get('cache-status') ?? ''
}

/** The settings that the advice on `before` names, as `after`; then the same reads are hits. */
const misconfigurations: readonly {
  readonly reason: string
  readonly before: Tree
  readonly after: Tree
  readonly headers?: Readonly<Record<string, string>>
  readonly upstream?: Readonly<Record<string, string>>
}[] = [
  {
    reason: 'no-rule',
    before: { rules: [] },
    after: { rules: [{ match: 'GET /site/v2/posts', ttl: '60s' }] },
  },
  {
    reason: 'cookie',
    before: { rules },
    after: { rules, harmlessCookies: ['theme'] },
    headers: { Cookie: 'theme=dark' },
  },
  {
    reason: 'authorization',
    before: { rules },
    after: { rules: [{ match: 'GET /site/v2/posts', ttl: '60s', scope: 'credential' }] },
    headers: { Authorization: 'Basic YTpi' },
  },
  {
    reason: 'no-store',
    before: { rules },
    after: { rules: [{ match: 'GET /site/v2/posts', ttl: '60s', override: true }] },
    upstream: { 'Cache-Control': 'no-store' },
  },
  {
    reason: 'private',
    before: { rules },
    after: { rules: [{ match: 'GET /site/v2/posts', ttl: '60s', override: true, scope: 'credential' }] },
    upstream: { 'Cache-Control': 'private' },
    headers: { Authorization: 'Basic YTpi' },
  },
  {
    reason: 'token',
    before: { rules },
    after: { rules, harmlessFields: ['x-session-id'] },
    upstream: { 'X-Session-Id': 'always-the-same' },
  },
]

describe('what costs hits comes first, with settings that make the reads hits', () => {
  test.each(misconfigurations)('$reason', async ({ reason, before, after, headers = {}, upstream = {} }) => {
    const gateway = await start(before, { ...plain, ...upstream })
    for (let count = 0; count < 5; count += 1) expect(await read(gateway, headers)).not.toContain('hit')
    // A credential bypasses before anything is known of the response.
    const wanted = headers['Authorization'] === undefined ? reason : 'authorization'
    expect((await adviceOf(gateway))[0]).toMatchObject({ route: '/site/v2/posts', reason: wanted, share: 1 })
    const mended = await start(after, { ...plain, ...upstream })
    await read(mended, headers)
    for (let count = 0; count < 5; count += 1) expect(await read(mended, headers)).toContain('hit')
    expect(await adviceOf(mended)).toEqual([])
  })

  test('a POST that emptied the cache, before a cookie that some sent', async () => {
    const gateway = await start({ rules }, plain)
    await read(gateway, { Cookie: 'theme=dark' })
    for (let count = 0; count < 5; count += 1) {
      await read(gateway)
      await fetch(`${gateway.publicAddress}/index.php/site-json/acme/v1/ping`, { method: 'POST' })
    }
    const [first, second] = await adviceOf(gateway)
    expect(first).toMatchObject({ reason: 'emptied', yaml: expect.stringContaining('harmlessWrites') })
    expect(second).toMatchObject({ reason: 'cookie' })
  })
})
