import { Cache } from '../src/cache/cache.ts'
import { cacheKey } from '../src/cache/cache-key.ts'
import type { CacheRead } from '../src/cache/cache-read.ts'
import type { CachePolicy } from '../src/cache/decide-caching.ts'
import { systemClock } from '../src/clock.ts'
import { unlimited } from '../src/http/bounds/byte-budget.ts'
import type { GatewayResponse } from '../src/http/message.ts'
import { Redaction } from '../src/http/redaction.ts'
import { createRouter } from '../src/service/router.ts'
import type { Found } from '../src/service/row.ts'
import { siteRows } from '../src/wordpress/routes/route-table.ts'
import { createSiteTagger } from '../src/wordpress/tags/site-tagger.ts'
import { siteTags } from '../src/wordpress/tags/tags.ts'
import { checkCommandLine, words } from './command-line.ts'
import { median, quantile } from './statistics.ts'

// npm run bench:memory                 100,000 stored lists of 2 kB
// npm run bench:memory -- 10000        a short look
// Needs --expose-gc. Ends with code 1 when a bound does not hold.
checkCommandLine('npm run bench:memory -- [ENTRIES]', {}, [words.count])
const entries = Number(process.argv[2] ?? 100_000)
const invalidations = Math.min(200, entries / 100)

/** Posts in a list, and lists that show a post. */
const shown = 10

const tagger = createSiteTagger({ service: 'site', table: siteTags })
const policy: CachePolicy = {
  profile: 'safe',
  rule: {
    ttlMs: 3_600_000,
    staleWhileRevalidateMs: 0,
    staleIfErrorMs: 0,
    negativeTtlMs: 0,
    override: false,
    scope: 'public',
  },
}
const found = createRouter(siteRows).find('GET', '/site/v2/posts') as Found
const signal = new AbortController().signal

type Made = { readonly headers: string[]; readonly content: Buffer }

/** As many lists as posts: list `n` shows posts `n` to `n + 9`, all around. */
const listOf = (n: number): Buffer => {
  const posts = Array.from({ length: shown }, (_, i) => ({
    id: ((n + i) % entries) + 1,
    type: 'post',
    slug: `plant-of-the-day-${n + i}`,
    title: { rendered: `Plant of the day ${n + i}` },
    excerpt: { rendered: '<p>Leaf, stem and root, and how they change in</p>' },
  }))
  const text = JSON.stringify(posts)
  return Buffer.from(text.length < 2000 ? text.slice(0, -1).padEnd(1999) + text.slice(-1) : text)
}

/** New strings, as a socket gives them: literals would be counted once for all entries. */
const headersOf = (n: number): string[] =>
  [
    'Content-Type',
    'application/json; charset=UTF-8',
    'Date',
    'Sat, 21 Nov 2026 11:00:00 GMT',
    'X-Robots-Tag',
    'noindex',
    'Link',
    `<http://127.0.0.1/index.php/site-json/site/v2/posts?page=${n + 1}>; rel="next"`,
    'X-Content-Type-Options',
    'nosniff',
    'Access-Control-Expose-Headers',
    'X-WP-Total, X-WP-TotalPages, Link',
    'Allow',
    'GET',
    'X-WP-Total',
    String(100_000 + n),
    'X-WP-TotalPages',
    String(10_000 + n),
  ].map((text) => Buffer.from(text, 'latin1').toString('latin1'))

const held = (): number => {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const cache = new Cache({
  budget: () => unlimited,
  maxBytes: 4 * 1024 ** 3,
  maxHeapBytes: Number.POSITIVE_INFINITY,
  maxEntryBytes: 4 * 1024 ** 2,
  admission: 'always',
  compression: { codings: [], minBytes: 1024 },
  clock: systemClock,
  redaction: new Redaction(),
  report: () => undefined,
})

/** The two ends: a list as sites answer it, and next to nothing, where all is overhead. */
const list = (n: number): Made => ({ headers: headersOf(n), content: listOf(n) })
const nothing = (): Made => ({ headers: [], content: Buffer.from('{}') })

const read = (n: number): CacheRead => ({
  service: 'site',
  route: '/site/v2/posts',
  key: cacheKey({
    service: 'site',
    target: `/site/v2/posts?page=${n + 1}`,

    partition: 'public',
  }),
  partition: 'public',
  method: 'GET',
  headers: {},
  sentHeader: () => undefined,
  policy,
  tags: (made) => tagger.storedTags(found, {}, made),
  signal,
})

/** Stores one response and reads it so often. */
const store = async (n: number, { headers, content }: Made, hits: number): Promise<number> => {
  const response: GatewayResponse = { status: 200, headers, content }
  for (let i = 0; i <= hits; i += 1) {
    const { outcome } = await cache.response(read(n), async () => response)
    if (outcome !== (i === 0 ? 'miss' : 'hit')) throw new Error(`read ${i} of entry ${n} was a ${outcome}`)
  }
  return content.length
}

const empty = (): void => {
  cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })
}

type Weight = { readonly content: number; readonly real: number; readonly counted: number }

/** Fills the cache and weighs it; all figures are bytes of one entry. */
const weigh = async (make: (n: number) => Made, hits = 0): Promise<Weight> => {
  // Everything is compiled and warm before the first reading.
  for (let n = 0; n < 1000; n += 1) await store(n, make(n), hits)
  empty()
  const before = held()
  let content = 0
  for (let n = 0; n < entries; n += 1) content += await store(n, make(n), hits)
  const real = (held() - before) / entries
  const { bytes, entries: stored } = cache.stats()
  if (stored !== entries) throw new Error(`${stored} of ${entries} are stored`)
  return { content: content / entries, real, counted: bytes / entries }
}

/** Milliseconds of each; every one drops the ten lists that show a post. */
const invalidate = (): readonly number[] => {
  const times = Array.from({ length: invalidations }, (_, i) => {
    const post = Math.floor((i * entries) / invalidations) + 1
    const began = performance.now()
    const dropped = cache.invalidate([`site/item/posts/${post}`])
    const took = performance.now() - began
    if (dropped !== shown) throw new Error(`${dropped} entries dropped instead of ${shown}`)
    return took
  })
  return times
}

const small = await weigh(nothing)
empty()
// The third hit of a second has a ready response.
const hot = await weigh(list, 3)
empty()
const large = await weigh(list)
const { tags } = cache.stats()
const times = invalidate()
const [middle, slow] = [median(times), quantile(times, 0.99)]
const bound = 1.5 * large.content + 1024

const kilo = (value: number): string => `${(value / 1000).toFixed(2)} kB`
const line = (name: string, { content, real, counted }: Weight): string =>
  `${name} content ${kilo(content)}, held ${kilo(real)}, counted ${kilo(counted)} an entry`
console.log(`${entries} entries, ${tags} tags`)
console.log(line('lists:  ', large), `(bound ${kilo(bound)})`)
console.log(line('read 3 times:', hot))
console.log(line('nothing:', small))
console.log(`one tag of ${shown} entries: median ${middle.toFixed(3)} ms, p99 ${slow.toFixed(3)} ms`)

const broken = [
  ...(large.real <= bound ? [] : ['an entry holds more than 1.5 times its content and 1 kB']),
  ...([small, large, hot].every(({ counted, real }) => counted >= real)
    ? []
    : ['less is counted than is held']),
  ...(middle < 1 ? [] : ['an invalidation takes 1 ms or more']),
]
for (const text of broken) console.error(text)
process.exitCode = broken.length === 0 ? 0 : 1
cache.close()
