import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { closedAfterEach } from '../support/close.ts'
import { runCommand } from '../support/command.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Script, startOrigin } from '../support/origin.ts'

const opened = closedAfterEach()

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

const start = async ({ cache, service }: Settings, script: Script) => {
  const origin = await startOrigin(script)
  const gateway = await startTestGateway({
    ...(cache === undefined ? {} : { cache }),
    services: { blog: siteService(origin.origin, service) },
  })
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

/** Settings of the gateway and of its service, as an operator has them. */
type Settings = { readonly cache?: Tree; readonly service: Tree }

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** With what was copied from an advice: its rules come before the others, all else replaces what was there. */
const withCopied = (before: Tree, copied: Tree): Tree => {
  const merged: Record<string, unknown> = { ...before }
  for (const [name, value] of Object.entries(copied)) {
    const old = before[name]
    if (isTree(old) && isTree(value)) merged[name] = withCopied(old, value)
    else merged[name] = name === 'rules' && Array.isArray(old) ? [...(value as []), ...old] : value
  }
  return merged
}

/** The YAML of an advice, with the name that `trellis explain` says in the place of NAME. */
const applied = ({ cache, service }: Settings, { yaml = '' }: Advice, named: string): Settings => {
  const tree = parse(yaml.replaceAll('NAME', named)) as {
    readonly cache?: Tree
    readonly services?: { readonly blog: Tree }
  }
  return {
    cache: withCopied(cache ?? {}, tree.cache ?? {}),
    service: withCopied(service, tree.services?.blog ?? {}),
  }
}

type Sent = { readonly headers?: Readonly<Record<string, string>>; readonly path?: string }

type Misconfiguration = {
  readonly cause: string
  /** The reason that the first advice has, and the later ones once it is applied. */
  readonly reasons: readonly string[]
  readonly before: Settings
  /** What `trellis explain` names. */
  readonly named?: string
  readonly upstream?: Readonly<Record<string, string>>
  readonly content?: string
  readonly sent?: (nth: number) => Sent
  /** Waits before each read but the first. */
  readonly pauseMs?: number
}

const withRules = (more: Tree = {}): Settings => ({ service: { cache: { rules, ...more } } })
const withHeader = (headers: Readonly<Record<string, string>>) => (): Sent => ({ headers })

const misconfigurations: readonly Misconfiguration[] = [
  { cause: 'no rule', reasons: ['no-rule'], before: { service: { cache: { rules: [] } } } },
  {
    cause: 'a cookie of the design',
    reasons: ['cookie'],
    before: withRules(),
    named: 'theme',
    sent: withHeader({ Cookie: 'theme=dark' }),
  },
  {
    cause: 'a credential on public reads',
    reasons: ['authorization'],
    before: withRules(),
    sent: withHeader({ Authorization: 'Basic YTpi' }),
  },
  {
    cause: 'no-store of a plugin',
    reasons: ['no-store'],
    before: withRules(),
    upstream: { 'Cache-Control': 'no-store' },
  },
  {
    cause: 'private, with a credential',
    reasons: ['authorization', 'private'],
    before: withRules(),
    upstream: { 'Cache-Control': 'private' },
    sent: withHeader({ Authorization: 'Basic YTpi' }),
  },
  {
    cause: 'a header that looks like a token',
    reasons: ['token'],
    before: withRules(),
    named: 'x-session-id',
    upstream: { 'X-Session-Id': 'always-the-same' },
  },
  {
    cause: 'no lifetime',
    reasons: ['no-freshness'],
    before: { service: { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '0s' }] } } },
  },
  {
    cause: 'a header of each request in the key',
    reasons: ['key-header'],
    before: withRules(),
    named: 'x-page-view',
    sent: (nth) => ({ headers: { 'X-Page-View': String(nth) } }),
  },
  {
    cause: 'a parameter that nobody reads',
    reasons: ['key-parameter'],
    before: withRules(),
    sent: (nth) => ({ path: `${posts}?visit=${nth}` }),
  },
  {
    cause: 'a lifetime that is shorter than the time between reads',
    reasons: ['expired'],
    before: { service: { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '20ms' }] } } },
    pauseMs: 40,
  },
  {
    cause: 'too little memory',
    reasons: ['evicted'],
    before: { ...withRules(), cache: { maxBytes: '1MiB', maxEntryBytes: '1MiB' } },
    content: JSON.stringify([{ id: 1, content: { rendered: 'a'.repeat(400_000) } }]),
    sent: (nth) => ({ path: `${posts}?page=${1 + (nth % 3)}` }),
  },
]

/** Reads as often as it takes to see whether there are hits; returns the share of hits once each was read. */
const hitRatio = async (
  gateway: TestGateway,
  { sent = () => ({}), pauseMs = 0 }: Misconfiguration,
): Promise<number> => {
  const count = 12
  let hits = 0
  for (let nth = 0; nth < count; nth += 1) {
    if (nth > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    const { headers, path } = sent(nth)
    hits += Number((await read(gateway, headers, path)).includes('hit'))
  }
  return hits / count
}

const printed = async (gateway: TestGateway): Promise<string> =>
  (await runCommand(['advise', '--admin', gateway.adminAddress])).stdout

describe('what costs hits comes first, with settings that make the reads hits', () => {
  test.each(misconfigurations)('$cause', async (row) => {
    const { reasons, upstream = {}, content = '[]' } = row
    const headers = { ...plain, ...upstream }
    const script: Script = (_, wire) => wire.respond({ headers, content })
    let settings = row.before
    for (const reason of reasons) {
      const gateway = await start(settings, script)
      expect(await hitRatio(gateway, row)).toBe(0)
      const [first] = await adviceOf(gateway)
      expect(first).toMatchObject({ route: '/site/v2/posts', reason })
      expect(first?.share).toBeGreaterThan(0.7)
      if (first !== undefined) settings = applied(settings, first, row.named ?? 'NAME')
    }
    const fixed = await start(settings, script)
    expect(await hitRatio(fixed, row)).toBeGreaterThanOrEqual(0.75)
    expect(await adviceOf(fixed)).toEqual([])
  })

  test('a POST that emptied the cache comes before a cookie that some sent', async () => {
    const script: Script = (_, wire) => wire.respond({ headers: plain, content: '[]' })
    const ratio = async (gateway: TestGateway): Promise<number> => {
      let hits = 0
      for (let count = 0; count < 5; count += 1) {
        hits += Number((await read(gateway)).includes('hit'))
        await fetch(`${gateway.publicAddress}/index.php/site-json/acme/v1/ping`, { method: 'POST' })
      }
      return hits / 5
    }
    const gateway = await start(withRules(), script)
    await read(gateway, { Cookie: 'theme=dark' })
    expect(await ratio(gateway)).toBe(0)
    const [first, second] = await adviceOf(gateway)
    expect(first).toMatchObject({ reason: 'emptied', route: 'POST unlisted' })
    expect(second).toMatchObject({ reason: 'cookie' })
    expect(await printed(gateway)).toMatch(/[.]\n\n {4}services:\n/)
    if (first === undefined) return
    const fixed = await start(applied(withRules(), first, 'acme/v1/ping'), script)
    expect(await ratio(fixed)).toBe(0.8)
  })
})

describe('what the companion of a site says of its responses', () => {
  /** Posts are described as `ofPosts` says, all else completely; each is read twice. */
  const readDescribed = async (ofPosts: Readonly<Record<string, string>>): Promise<TestGateway> => {
    const complete = { 'Trellis-Tags': 'v1;n=0;complete;blogs=1' }
    const gateway = await start(withRules(), ({ target }, wire) => {
      const headers = { ...plain, ...(target.includes('/posts') ? ofPosts : complete) }
      wire.respond({ headers, content: '[]' })
    })
    for (const list of ['posts', 'pages', 'tags', 'categories'])
      for (let times = 0; times < 2; times += 1)
        await read(gateway, {}, `/index.php/site-json/site/v2/${list}`)
    return gateway
  }

  test.each([
    [
      { 'Trellis-Tags': 'v1;n=0;blogs=1', 'Trellis-Incomplete': 'plugin shop: all options' },
      'plugin shop: all options',
    ],
    [{ 'Trellis-Tags': 'v1;n=0;blogs=1' }, 'the companion does not say why'],
    [{ 'Trellis-Tags': 'damaged' }, 'the companion does not say why'],
    [{}, 'responses that the companion does not describe'],
  ])('the share that is complete, and what costs the rest: %j', async (ofPosts, cause) => {
    const gateway = await readDescribed(ofPosts)
    expect(await adviceOf(gateway)).toMatchObject([
      { route: 'all routes', reason: 'incomplete', count: 1, reads: 4, share: 0.25 },
    ])
    expect(await printed(gateway)).toBe(
      `blog all routes: 1 of 4 stored responses (25.0 %)\n  the companion describes 3 of 4 stored responses completely (75.0 %). Each change of anything public drops the others: ${cause} (1).\n`,
    )
  })

  test('where all are complete it says so', async () => {
    const gateway = await readDescribed({ 'Trellis-Tags': 'v1;n=0;complete;blogs=1' })
    expect(await adviceOf(gateway)).toEqual([])
    expect(await printed(gateway)).toContain(
      'blog: the companion describes all of 4 stored responses completely.\n',
    )
  })
})
