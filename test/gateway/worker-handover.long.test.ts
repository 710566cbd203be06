import { afterAll, beforeAll, expect, test } from 'vitest'
import { allWorkers } from '../properties/living-workers.ts'
import { siteService } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { openLine } from '../support/held-line.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: GatewayProcess

beforeAll(async () => {
  origin = await startOrigin((_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{"id":1,"type":"post"}' }),
  )
  gateway = await startGatewayProcess({
    workers: 2,
    log: { level: 'info' },
    services: { site: siteService(origin.origin) },
  })
})
afterAll(async () => {
  await gateway.stop()
  await origin.close()
})

const get = 'GET /index.php/site-json/site/v2/posts/1 HTTP/1.1\r\nHost: gateway\r\n\r\n'

test('while a worker stands still or is killed, the others take the connections', async () => {
  for (const turn of [0, 1]) {
    const [first, second] = await allWorkers(gateway, 2)
    const stopped = turn === 0 ? first : second
    if (stopped === undefined) throw new Error('no worker')
    process.kill(stopped, 'SIGSTOP')
    const lines = await Promise.all(Array.from({ length: 8 }, () => openLine(gateway.origin)))
    const responses = Promise.all(lines.map(async (line) => (await line.ask(get)).status))
    expect(await responses).toEqual(lines.map(() => 200))
    process.kill(stopped, 'SIGKILL')
    for (const line of lines) line.close()
  }
})
