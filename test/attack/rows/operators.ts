import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AttackRow, all, fault, faultsOf, row, type Tree } from '../attack-row.ts'
import { ask, attacker, flood } from '../clients.ts'
import { resetStreams } from '../holding.ts'
import { originOf, type Scene, scriptedOrigin } from '../scene.ts'
import { openService, site, siteReads, siteService, withTls } from '../services.ts'

// What clients make the gateway write and record, who passes for its operator, and who counts as one client.

const plain = ({ upstream }: Pick<Scene, 'upstream'>): Tree => ({ services: { open: openService(upstream) } })

const maxLines = 50

const linesSince = (scene: Scene, before: number): number => {
  const lines = scene.gateway.program.output().split('\n').length
  return Math.max(0, lines - before)
}

const linesNow = (scene: Scene): number => scene.gateway.program.output().split('\n').length

type Lines = { readonly lines: number }
const tooManyLines = ({ found }: { found: Lines }) =>
  found.lines <= maxLines ? [] : [fault(`${found.lines} log lines, more than ${maxLines}`)]

const malformed: readonly string[] = [
  'GET /open/%zz HTTP/1.1',
  'GET /open/a HTTP/1.1\r\nContent-Length: 5_0',
  `GET /open/${'a'.repeat(9_000)} HTTP/1.1`,
  `GET ${site}/site/v2/posts?per_page=abc HTTP/1.1`,
  'GET /nowhere HTTP/1.1',
  `POST ${site}/site/v2/posts HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 0`,
]

/** Id of a trace that a sampler by ratio always takes: its four parts cancel each other out. */
const luckyTrace = (): string => {
  const parts = randomBytes(12)
  const last = Buffer.alloc(4)
  for (let at = 0; at < 4; at += 1) last[at] = (parts[at] ?? 0) ^ (parts[at + 4] ?? 0) ^ (parts[at + 8] ?? 0)
  return parts.toString('hex') + last.toString('hex')
}

type Traced = { readonly asked: number; readonly traces: number }

const askTraced = async (scene: Scene, ids: () => string): Promise<Traced> => {
  const asked = 400
  for (let at = 0; at < asked; at += 40) {
    await Promise.all(
      Array.from({ length: 40 }, () =>
        ask(scene.origin, '/open/hit/a', {
          headers: { traceparent: `00-${ids()}-b7ad6b7169203331-01` },
        }),
      ),
    )
  }
  await sleep(1_500)
  const traces = new Set<string>()
  for (const { content } of originOf(scene).received) {
    for (const [, id] of content.toString('latin1').matchAll(/"traceId":"([0-9a-f]{32})"/g)) {
      traces.add(id ?? '')
    }
  }
  return { asked, traces: traces.size }
}

const collected = async (scene: Pick<Scene, 'upstream' | 'resources'>): Promise<Tree> => {
  const collector = await scriptedOrigin(scene, (_, wire) => wire.respond({ content: '{}' }))
  return { ...plain(scene), tracing: { otlpUrl: collector.origin, sampleRatio: 0.02 } }
}

/** The honest reader is traced as well: some of its requests, at the ratio, are recorded beside those of the attack. */
const maxTraces = 40

const tracing = (name: string, description: string, ids: () => string): AttackRow =>
  row<Traced>({
    name,
    description,
    env: { OTEL_BSP_SCHEDULE_DELAY: '200' },
    settings: collected,
    attack: (scene) => askTraced(scene, ids),
    verdict: ({ found }) =>
      found.traces <= maxTraces
        ? []
        : [fault(`${found.traces} of ${found.asked} requests were recorded, with a ratio of 0.02`)],
  })

const proxied: readonly Readonly<Record<string, string>>[] = [
  { 'X-Real-IP': '203.0.113.7' },
  { Via: '1.1 proxy' },
  { Forwarded: 'for=203.0.113.7' },
  { 'X-Forwarded-For': '203.0.113.7' },
  { 'X-Forwarded-Host': 'admin.test' },
  { 'X-Forwarded-Proto': 'https' },
  { 'X-Forwarded': '203.0.113.7' },
  { 'X-Client-IP': '203.0.113.7' },
  { 'True-Client-IP': '203.0.113.7' },
  { 'CF-Connecting-IP': '203.0.113.7' },
]

type Limited = { readonly passed: number; readonly other: number }

export const operatorRows: readonly AttackRow[] = [
  row<Lines>({
    name: 'refusals-logged',
    description: '1,000 requests that are refused write at most 50 log lines.',
    settings: ({ upstream }) => ({
      services: { open: openService(upstream), site: siteService(upstream) },
    }),
    reads: siteReads,
    attack: async (scene) => {
      const before = linesNow(scene)
      await flood(scene, AbortSignal.timeout(15_000), {
        connections: 8,
        addresses: [attacker],
        max: 1_000,
        head: (number) => malformed[number % malformed.length] ?? '',
      })
      await sleep(500)
      return { lines: linesSince(scene, before) }
    },
    verdict: all(tooManyLines),
  }),
  row<Lines>({
    name: 'resets-logged',
    description: 'HTTP/2 connections that reset their streams write at most 50 log lines.',
    settings: async (scene) => ({ ...plain(scene), listen: await withTls() }),
    attack: async (scene) => {
      const before = linesNow(scene)
      await resetStreams(scene, AbortSignal.timeout(5_000), { connections: 4, path: '/open/read/reset' })
      await sleep(500)
      return { lines: linesSince(scene, before) }
    },
    verdict: all(tooManyLines),
  }),
  row<readonly string[]>({
    name: 'admin-through-proxy',
    description: 'What a proxy on the same host passes on to the admin side changes nothing without a token.',
    settings: plain,
    attack: async (scene) => {
      const found: string[] = []
      for (const headers of proxied) {
        const { status } = await ask(scene.gateway.adminOrigin, '/cache/purge', {
          method: 'POST',
          from: '127.0.0.1',
          headers: { 'Content-Type': 'application/json', ...headers },
          content: '{"all":true}',
        })
        if (status !== 403) found.push(`with ${Object.keys(headers)[0]}: status ${status}`)
      }
      return found
    },
    verdict: ({ found }) => faultsOf(found),
  }),
  tracing('traces-flagged', 'Requests that ask to be recorded are recorded at the configured ratio.', () =>
    randomBytes(16).toString('hex'),
  ),
  tracing('traces-chosen', 'The same with trace ids that a sampler by ratio always takes.', luckyTrace),
  row<Limited>({
    name: 'one-network-one-caller',
    description:
      '1,000 addresses of one IPv6 /64 count as one caller for a rate limit, and another /64 as another.',
    settings: (scene) => ({
      ...plain(scene),
      trustedProxies: ['127.0.0.2/32'],
      rateLimits: [{ name: 'callers', service: 'open', match: 'GET /limited', max: 20 }],
    }),
    attack: async (scene) => {
      const head = (address: string): string => `GET /open/limited HTTP/1.1\r\nX-Forwarded-For: ${address}`
      const ways = ['2001:db8:0:1::', '2001:DB8::1:0:0:0:', '2001:0db8:0000:0001:0:0:0:']
      const statuses = await flood(scene, AbortSignal.timeout(15_000), {
        connections: 8,
        addresses: [attacker],
        max: 1_000,
        head: (number) => head(`${ways[number % ways.length]}${number.toString(16)}`),
      })
      const other = await ask(scene.origin, '/open/limited', {
        headers: { 'X-Forwarded-For': '2001:db8:0:2::1' },
      })
      return { passed: statuses['200'] ?? 0, other: other.status }
    },
    verdict: ({ found }) => [
      ...(found.passed <= 20 && found.passed > 0
        ? []
        : [fault(`${found.passed} requests of one /64 passed a limit of 20`)]),
      ...(found.other === 200 ? [] : [fault(`another /64 got ${found.other}`)]),
    ],
  }),
]
