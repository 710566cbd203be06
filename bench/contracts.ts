import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { startGatewayProcess } from '../test/support/gateway-process.ts'
import { checkCommandLine } from './command-line.ts'
import { pipelinedGets } from './million/pipelined-gets.ts'
import { processorSeconds } from './processor-time.ts'
import { median } from './statistics.ts'

// npm run bench:contracts: processor time of the gateway for a hit and a miss of 2 kB, by GraphQL, on a route of an OpenAPI document and on
// one of a site, and the share of the site's rate that the others reach. All are in one gateway, take turns, and wait for each response, as
// clients do. BENCH_COUNT: requests in each turn.
checkCommandLine('npm run bench:contracts (BENCH_COUNT: requests in each turn)')

const text = 'x'.repeat(2_000)
const upstream = createServer((request, response) => {
  const content = request.url?.startsWith('/graphql') === true ? { data: { text } } : { text }
  request.resume()
  response.setHeader('Content-Type', 'application/json').end(JSON.stringify(content))
})
await new Promise<void>((listening) => upstream.listen(0, '127.0.0.1', listening))
const address = upstream.address()
const targets = [`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`]

const described = fileURLToPath(new URL('../test/contracts/openapi/shop.yaml', import.meta.url))

const gateway = await startGatewayProcess({
  services: {
    api: {
      contract: 'openapi',
      mount: '/api',
      document: described,
      upstream: { targets },
      cache: { rules: [{ match: 'GET /items/**', ttl: '1h' }] },
    },
    site: {
      contract: 'site',
      mount: '/site',
      upstream: { targets },
      cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
    },
    graph: {
      contract: 'graphql',
      upstream: { targets },
      cache: { rules: [{ match: 'query *', ttl: '1h' }] },
    },
  },
})

const document = `query Posts($page: Int!) {
  posts(first: 10, where: { page: $page }) {
    nodes { id databaseId title uri date excerpt author { node { name uri } } featuredImage { node { sourceUrl altText } } }
    pageInfo { hasNextPage endCursor }
  }
}`
const operationOf = (page: number): string =>
  JSON.stringify({ query: document, operationName: 'Posts', variables: { page } })
const urlOf = (page: number): string =>
  `/graphql?operationName=Posts&variables=${encodeURIComponent(`{"page":${page}}`)}&query=${encodeURIComponent(document)}`

type Requests = { readonly targetOf: (page: number) => string; readonly contentOf?: (page: number) => string }

const kinds: Readonly<Record<string, Requests>> = {
  site: { targetOf: (page) => `/site/site/v2/posts?per_page=8&page=${page}` },
  OpenAPI: { targetOf: (page) => `/api/items/5?page=${page}` },
  'OpenAPI, a header and a cookie in the key': { targetOf: (page) => `/api/items?limit=8&tags=${page}` },
  'GraphQL, GET': { targetOf: urlOf },
  'GraphQL, POST': { targetOf: () => '/graphql', contentOf: operationOf },
}
const count = Number(process.env['BENCH_COUNT'] ?? 3_000)
const rounds = 6
let nextPage = 1_000_000

const microsOf = async ({ targetOf, contentOf }: Requests, pageOf: (turn: number) => number) => {
  const before = processorSeconds(gateway.program.pid)
  const successes = await pipelinedGets({
    ...{ origin: gateway.origin, count, connections: 16, depth: 1 },
    targetOf: (turn) => targetOf(pageOf(turn)),
    ...(contentOf === undefined ? {} : { contentOf: (turn) => contentOf(pageOf(turn)) }),
  })
  if (successes !== count) throw new Error(`${count - successes} failures`)
  return ((processorSeconds(gateway.program.pid) - before) * 1e6) / count
}

const pages = {
  hit: () => 2,
  miss: () => {
    nextPage += 1
    return nextPage
  },
}

const found = new Map<string, number[]>()
try {
  for (let round = -1; round < rounds; round += 1)
    for (const [outcome, pageOf] of Object.entries(pages))
      for (const [kind, requests] of Object.entries(kinds)) {
        const micros = await microsOf(requests, pageOf)
        const name = `${outcome}, ${kind}`
        if (round >= 0) found.set(name, [...(found.get(name) ?? []), micros])
      }
  for (const [name, micros] of found) {
    const [outcome] = name.split(',')
    const ratio = median(found.get(`${outcome}, site`) ?? []) / median(micros)
    console.log(
      `${name.padEnd(48)} ${median(micros).toFixed(1)} µs of processor time, ${ratio.toFixed(2)} of the site's rate`,
    )
  }
} finally {
  await gateway.stop()
  upstream.close()
}
