/** What is measured. */
export type Scenario =
  | 'hit'
  | 'hit-cors'
  | 'hit-cors-none'
  | 'hit-headers'
  | 'hit-limits'
  | 'hit-all'
  | 'hit-tls'
  | 'hit-h2'
  | 'not-modified-h2'
  | 'hit-20k'
  | 'hit-192k'
  | 'hit-192k-gzip'
  | 'not-modified'
  | 'miss'
  | 'miss-site'
  | 'pass'
  | 'upload'
  | 'write'
  | 'refusal'
  | 'zipf'
  | 'purge-storm'
  | 'mixed'

/** Settings that every response pays for. */
type Settings = { readonly of: 'gateway' | 'site'; readonly tree: object }[]

export type ScenarioFacts = {
  readonly name: Scenario
  readonly title: string
  /** Peer that ratios are taken against. */
  readonly yardstick: string
  /** Request headers. */
  readonly headers?: readonly string[]
  /** With the entity tag that the peer's own response carries, as a client that has it would ask; the response is a 304. */
  readonly revalidates?: true
  /** Program for wrk in bench/wrk; without wrk the scenario is left out. */
  readonly script?: string
  /** Arguments of the program, behind the number at which new targets begin. */
  readonly scriptArguments?: readonly string[]
  /** How a response must have come about. */
  readonly expects: 'hit' | 'forwarded' | 'refused'
  /** Targets to be asked for once before anything is measured: this many, numbered from 1. */
  readonly fill?: number
  /** Of this build alone, in pairs with `plain`. */
  readonly settings?: Settings
  /** TLS, with HTTP/1.1 or HTTP/2; without it plain HTTP/1.1. */
  readonly over?: 'https' | 'h2'
  /** What is asked again and again is purged fifty times a second meanwhile. */
  readonly purges?: boolean
}

const workingSet = 100_000

/** In the order in which they run. */
export const scenarios: readonly ScenarioFacts[] = [
  { name: 'hit', title: 'cache hit, 2 kB of JSON', yardstick: 'node-http', expects: 'hit' },
  { name: 'hit-20k', title: 'cache hit, 20 kB', yardstick: 'node-http', expects: 'hit' },
  { name: 'hit-192k', title: 'cache hit, 192 kB', yardstick: 'node-http', expects: 'hit' },
  {
    name: 'hit-192k-gzip',
    title: 'cache hit, 192 kB, Accept-Encoding: gzip',
    yardstick: 'node-http',
    headers: ['Accept-Encoding: gzip'],
    expects: 'hit',
  },
  {
    name: 'not-modified',
    title: 'conditional hit, 304',
    yardstick: 'node-http',
    revalidates: true,
    expects: 'hit',
  },
  {
    name: 'miss',
    title: 'miss: 2 kB fetched and stored, every target a new one',
    yardstick: 'http-proxy',
    script: 'distinct.lua',
    expects: 'forwarded',
  },
  {
    name: 'miss-site',
    title: 'the same on a site route: validated, canonical, in public names, tagged',
    yardstick: 'http-proxy',
    script: 'distinct.lua',
    expects: 'forwarded',
  },
  { name: 'pass', title: 'pass-through, 2 kB of JSON', yardstick: 'http-proxy', expects: 'forwarded' },
  {
    name: 'upload',
    title: 'upload of 64 kB that streams through, three services on its upstream',
    yardstick: 'http-proxy',
    script: 'upload.lua',
    expects: 'forwarded',
  },
  {
    name: 'write',
    title: 'write of 2 kB whose reach nobody knows, three services on its upstream',
    yardstick: 'http-proxy',
    script: 'write.lua',
    expects: 'forwarded',
  },
  { name: 'refusal', title: 'refused by validation, 400', yardstick: 'node-http', expects: 'refused' },
  {
    name: 'zipf',
    title: `hits on ${workingSet.toLocaleString('en')} targets of 2 kB under Zipf`,
    yardstick: 'node-http',
    script: 'zipf.lua',
    scriptArguments: [String(workingSet)],
    expects: 'hit',
    fill: workingSet,
  },
  {
    name: 'purge-storm',
    title: 'cache hit, purged fifty times a second',
    yardstick: 'node-http',
    expects: 'hit',
    purges: true,
  },
  {
    name: 'mixed',
    title: 'nine hits in ten on 1,000 targets, the rest misses and bypasses',
    yardstick: 'http-proxy',
    script: 'mixed.lua',
    scriptArguments: ['/plain/list'],
    expects: 'hit',
    fill: 1000,
  },
]

const cors: Settings = [{ of: 'gateway', tree: { cors: { origins: ['https://shop.example'] } } }]
const headers: Settings = [
  {
    of: 'site',
    tree: {
      responseHeaders: {
        set: { 'Strict-Transport-Security': 'max-age=31536000', 'X-Content-Type-Options': 'nosniff' },
        remove: ['X-WP-Total'],
      },
    },
  },
]
const limit = { name: 'reads', service: 'site', match: 'GET /**', by: 'address', max: 1e9, window: '1h' }
const limits: Settings = [{ of: 'gateway', tree: { rateLimits: [limit] } }]
const sampled: Settings = [{ of: 'gateway', tree: { log: { access: 'sample' } } }]

const configuredHit = (
  name: Scenario,
  title: string,
  settings: Settings,
  headers: readonly string[] = [],
): ScenarioFacts => ({
  name,
  title: `cache hit with ${title}`,
  yardstick: 'plain',
  headers,
  expects: 'hit',
  settings,
})

const fromPage = ['Origin: https://shop.example']

/** In pairs alone: `npm run bench pairs plain hit-cors`, one at a time. */
const configuredHits: readonly ScenarioFacts[] = [
  configuredHit('hit-cors', 'cors and Origin', cors, fromPage),
  configuredHit('hit-cors-none', 'cors, without Origin', cors),
  configuredHit('hit-headers', 'responseHeaders', headers),
  configuredHit('hit-limits', 'a rate limit', limits),
  configuredHit(
    'hit-all',
    'all three and a sampled log',
    [...cors, ...headers, ...limits, ...sampled],
    fromPage,
  ),
]

/** In pairs alone, one at a time. */
const encryptedHits: readonly ScenarioFacts[] = [
  {
    name: 'hit-tls',
    title: 'cache hit, HTTP/1.1 over TLS',
    yardstick: 'node-https',
    expects: 'hit',
    over: 'https',
  },
  {
    name: 'hit-h2',
    title: 'cache hit, HTTP/2 over TLS',
    yardstick: 'node-http2',
    expects: 'hit',
    over: 'h2',
  },
  {
    name: 'not-modified-h2',
    title: 'conditional hit, 304, HTTP/2 over TLS',
    yardstick: 'node-http2',
    revalidates: true,
    expects: 'hit',
    over: 'h2',
  },
]

/** What holds for a scenario. */
export function factsOf(scenario: Scenario): ScenarioFacts {
  const facts = [...scenarios, ...configuredHits, ...encryptedHits].find(({ name }) => name === scenario)
  if (facts === undefined) throw new RangeError(`no scenario ${scenario}`)
  return facts
}
