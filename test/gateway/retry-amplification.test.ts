import { expect, onTestFinished, test } from 'vitest'
import { siteService, startTestGateway } from '../support/gateway.ts'
import { type Script, startOrigin } from '../support/origin.ts'

const requests = 200

const refuse: readonly (readonly [string, Script])[] = [
  ['resets every connection', (_, wire) => wire.reset()],
  [
    'answers 503 and asks to come back at once',
    (_, wire) => wire.respond({ status: 503, headers: { 'Retry-After': '0' } }),
  ],
]

const breakers = [
  ['never opens', 1.2, { failureRatio: 0 }],
  ['is as it is by default', 0.5, {}],
] as const

test.each(
  refuse.flatMap(([failure, script]) => breakers.map((breaker) => [failure, ...breaker, script] as const)),
)(
  'an upstream that %s, with a breaker that %s, is asked at most %s times as often as clients ask',
  async (_failure, _breaker, max, breaker, script) => {
    const origin = await startOrigin(script)
    const upstream = { targets: [origin.origin], retry: { attempts: 5, budget: 0.2 }, breaker }
    const gateway = await startTestGateway({
      services: {
        site: siteService(origin.origin, { upstream: { ...upstream, basePath: '/index.php/wp-json' } }),
        open: { contract: 'open', mount: '/open', upstream: { ...upstream, breaker: { ...breaker } } },
      },
    })
    onTestFinished(async () => {
      await origin.close()
      await gateway.close()
    })
    const ask = async (number: number): Promise<void> => {
      const path = number % 2 === 0 ? `/open/${number}` : `/index.php/site-json/site/v2/posts/${number}`
      await (await fetch(gateway.publicAddress + path)).arrayBuffer()
    }
    const work = async (from: number): Promise<void> => {
      for (let number = from; number < requests; number += 20) await ask(number)
    }
    await Promise.all(Array.from({ length: 20 }, (_, from) => work(from)))
    // Two services, each with the three retries that are allowed however little traffic there is.
    expect(origin.received.length).toBeLessThanOrEqual(max * requests + 6)
    expect(origin.received.length).toBeGreaterThan(0)
  },
)
