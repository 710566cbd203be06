import { afterEach, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway

afterEach(async () => {
  await gateway.close()
  await origin.close()
})

test.each([
  [3, 3, 207],
  [3, 4, 400],
  [40, 40, 207],
  [40, 41, 400],
])('with batch.maxItems %i a batch of %i answers %i', async (maxItems, items, status) => {
  origin = await startOrigin()
  const batch = { maxItems, split: 'item' }
  gateway = await startTestGateway({ services: { site: siteService(origin.origin, { batch }) } })
  const requests = Array.from({ length: items }, (_, i) => ({ path: `/site/v2/posts/${i + 1}`, body: {} }))
  const response = await fetch(`${gateway.publicAddress}/index.php/site-json/batch/v1`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ requests }),
  })
  expect(response.status).toBe(status)
  if (status === 400) {
    const { data } = (await response.json()) as { data: { params: Record<string, string> } }
    expect(data.params['requests']).toBe(`requests must contain at most ${maxItems} items.`)
  }
})
