import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { pipelinedGets } from '../../../bench/million/pipelined-gets.ts'
import { startGatewayProcess } from '../../support/gateway-process.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { programPid } from '../../support/processes.ts'

// One address invents documents without end, each with a name, a field and a key of its own. What the gateway remembers of them has
// bounds, so that it needs no more memory for the last tenth than for the first. INVENTED_DOCUMENTS: how many.

const count = Number(process.env['INVENTED_DOCUMENTS'] ?? 1_000_000)
const steps = 10

const invented = (nth: number): string =>
  JSON.stringify({ query: `query Invented${nth} { field${nth} { id title author { name } } }` })

const mebibytesOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

test('a million documents of one address take a bounded memory', async () => {
  const origin = await startHttpServer((incoming, response) => {
    incoming.resume().once('end', () => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"data":{"a":1}}')
    })
  })
  onTestFinished(() => origin.close())
  const gateway = await startGatewayProcess({
    cache: { maxBytes: '32MiB' },
    services: {
      graph: {
        ...{ contract: 'graphql', mount: '/graphql', upstream: { targets: [origin.origin] } },
        cache: { rules: [{ match: 'query *', ttl: '1h' }] },
      },
    },
  })
  onTestFinished(() => void gateway.stop())
  const pid = await programPid(gateway.program)
  const found: number[] = []
  for (let step = 0; step < steps; step += 1) {
    const successes = await pipelinedGets({
      ...{ origin: gateway.origin, count: count / steps, connections: 16, depth: 1 },
      targetOf: () => '/graphql',
      contentOf: (turn) => invented((step * count) / steps + turn),
    })
    expect(successes).toBe(count / steps)
    found.push(Math.round(mebibytesOf(pid)))
  }
  process.stdout.write(`${count} invented documents: ${found.join(', ')} MiB\n`)
  // The lowest of three: what waits for the collector is no memory of documents.
  expect(Math.min(...found.slice(-3))).toBeLessThan(Math.min(...found.slice(0, 3)) + 64)
  const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
  const labels = new Set(metrics.match(/route="query [^"]*"/g))
  expect(labels.size).toBeLessThanOrEqual(101)
}, 7_200_000)
