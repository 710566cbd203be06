import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { startGatewayProcess } from '../test/support/gateway-process.ts'
import { pipelinedGets } from './million/pipelined-gets.ts'
import { processorSeconds } from './processor-time.ts'
import { median } from './statistics.ts'

// npm run bench:openapi-hits: what a hit of 2 kB costs on a route of an OpenAPI document and on a route of a site, in processor time.
// Both are in one gateway, and take turns.
const content = JSON.stringify({ text: 'x'.repeat(2_000) })
const upstream = createServer((_request, response) => {
  response.setHeader('Content-Type', 'application/json').end(content)
})
await new Promise<void>((listening) => upstream.listen(0, '127.0.0.1', listening))
const address = upstream.address()
const targets = [`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`]
const document = fileURLToPath(new URL('../test/contracts/openapi/shop.yaml', import.meta.url))

const gateway = await startGatewayProcess({
  services: {
    api: {
      contract: 'openapi',
      mount: '/api',
      document,
      upstream: { targets },
      cache: { rules: [{ match: 'GET /items/**', ttl: '1h' }] },
    },
    site: {
      contract: 'site',
      mount: '/site',
      upstream: { targets },
      cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
    },
  },
})
const routes = {
  openapi: '/api/items/5?page=2',
  'openapi, with a header and a cookie in its key': '/api/items?limit=8&tags=a',
  site: '/site/site/v2/posts?per_page=8&page=2',
}
const count = 10_000
const rounds = 6

const microsOf = async (target: string): Promise<number> => {
  const before = processorSeconds(gateway.program.pid)
  const { origin } = gateway
  const successes = await pipelinedGets({ origin, targetOf: () => target, count, connections: 8 })
  if (successes !== count) throw new Error(`${target}: ${count - successes} failures`)
  return ((processorSeconds(gateway.program.pid) - before) * 1e6) / count
}

const found = new Map<string, number[]>(Object.keys(routes).map((name) => [name, []]))
try {
  for (let round = -1; round < rounds; round += 1)
    for (const [name, target] of Object.entries(routes)) {
      const status = (await fetch(gateway.origin + target)).headers.get('cache-status')
      if (round >= 0 && status?.includes('hit') !== true) throw new Error(`${target}: ${status}`)
      const micros = await microsOf(target)
      if (round >= 0) found.get(name)?.push(micros)
    }
  for (const [name, micros] of found) {
    console.log(`${name.padEnd(48)} ${median(micros).toFixed(1)} µs of processor time for a hit`)
  }
} finally {
  await gateway.stop()
  upstream.close()
}
