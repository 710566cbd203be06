import { expect } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

export const leaseMs = 300
const forgetAfterMs = 900
const posts = '/index.php/site-json/site/v2/posts'

/** What a read was answered with; `version`: how often it had been written when that was made. */
export type ReadResponse = { readonly status: string; readonly version: number }

/** Gateways in this process in front of some posts, of which the first one is written, and what a test does with them. */
export type SharingGateways = {
  start(shared: Readonly<Record<string, unknown>>): Promise<TestGateway>
  get(gateway: TestGateway, id?: number): Promise<ReadResponse>
  /** Returns the status, and how long it took. */
  put(gateway: TestGateway): Promise<{ readonly status: number; readonly tookMs: number }>
  /** Until it may answer from memory, or no longer. */
  trusts(gateway: TestGateway, does: boolean): Promise<void>
  trouble(gateway: TestGateway, name: string): Promise<number>
  stop(): Promise<void>
}

export const sharingGateways = async (): Promise<SharingGateways> => {
  let version = 0
  const gateways: TestGateway[] = []
  const origin: Origin = await startOrigin((request, wire) => {
    if (request.method === 'PUT') version += 1
    wire.respond({
      headers: { 'Content-Type': 'application/json' },
      content: JSON.stringify({ id: Number(/\d+$/.exec(request.target)?.[0]), type: 'post', version }),
    })
  })
  return {
    start: async (shared) => {
      const gateway = await startTestGateway({
        cache: { shared: { lease: `${leaseMs}ms`, forgetAfter: `${forgetAfterMs}ms`, ...shared } },
        services: {
          site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1m' }] } }),
        },
      })
      gateways.push(gateway)
      return gateway
    },
    get: async ({ publicAddress }, id = 1) => {
      const response = await fetch(`${publicAddress}${posts}/${id}`)
      const content = (await response.json()) as { version: number }
      return { status: response.headers.get('cache-status') ?? '', version: content.version }
    },
    put: async ({ publicAddress }) => {
      const began = performance.now()
      const response = await fetch(`${publicAddress}${posts}/1`, {
        method: 'PUT',
        headers: { authorization: 'Bearer x', 'content-type': 'application/json' },
        body: '{"title":"x"}',
      })
      await response.arrayBuffer()
      return { status: response.status, tookMs: performance.now() - began }
    },
    trusts: async (gateway, does) => {
      const message = does ? 'the instance does not trust its memory' : 'the instance trusts its memory'
      await expect
        .poll(() => gateway.metric('trellis_memory_trusted '), { message, interval: does ? 100 : 25 })
        .toBe(does ? 1 : 0)
    },
    trouble: (gateway, name) => gateway.metric('trellis_shared_troubles_total{', `"${name}"`),
    stop: async () => {
      for (const gateway of gateways) await gateway.close()
      await origin.close()
    },
  }
}
