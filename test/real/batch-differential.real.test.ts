import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { describeWith } from '../support/requirements.ts'
import { expectedDifference } from './batch/differences.ts'
import { envelopeCases } from './batch/envelope-cases.ts'
import { itemCases } from './batch/item-cases.ts'
import { orderCases } from './batch/order-cases.ts'
import { type BatchResponse, type BatchSite, publicUrl, sendBatch } from './batch/send-batch.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const allCases = [...orderCases, ...itemCases, ...envelopeCases]
/** The first case of each difference. */
const firsts = new Map([...allCases].reverse().map(({ title }) => [expectedDifference(title), title]))
const cases = rowsOf(
  allCases,
  16,
  ({ title }) => expectedDifference(title) !== undefined && firsts.get(expectedDifference(title)) === title,
)

const ways = [
  { title: 'item by item, names: same', split: 'item', names: 'same' },
  { title: 'in chunks, names: same', split: 'chunk', names: 'same' },
  { title: 'in chunks, names: wordpress', split: 'chunk', names: 'wordpress' },
  { title: 'whole, names: same', split: 'whole', names: 'same' },
] as const

/** Copies of one site get the same batches in the same order, one directly, the others through a gateway. */
describeWith('php', 'a batch is answered as WordPress answers it', () => {
  const expected = new Map<string, BatchResponse>()

  beforeAll(async () => {
    const wordpress = await startWordPress({ publicUrl })
    const site: BatchSite = { ...wordpress, names: 'wordpress' }
    for (const one of cases) expected.set(one.title, await sendBatch(site, one))
    await wordpress.stop()
  })

  test('cases have their own names', () => {
    expect(cases.length).toBeGreaterThan(14)
    expect(new Set(allCases.map(({ title }) => title)).size).toBe(allCases.length)
  })

  describe.each(rowsOf(ways, 2))('$title', ({ split, names }) => {
    let wordpress: WordPress
    let gateway: GatewayProcess
    let site: BatchSite
    beforeAll(async () => {
      wordpress = await startWordPress({ publicUrl })
      const mount = names === 'same' ? '/index.php/wp-json' : '/index.php/site-json'
      gateway = await startGatewayProcess({
        services: {
          site: {
            contract: 'site',
            mount,
            names,
            batch: { split },
            upstream: { targets: [wordpress.origin], basePath: '/index.php/wp-json' },
          },
        },
      })
      // The upstream's own address is learned from its index.
      await fetch(`${gateway.origin}${mount}/`)
      site = {
        restRoot: `${gateway.origin}${mount}`,
        names: names === 'same' ? 'wordpress' : 'neutral',
        credentials: wordpress.credentials,
      }
    })
    afterAll(async () => {
      await gateway?.stop()
      await wordpress?.stop()
    })

    test.each(cases)('$title', async (one) => {
      const response = await sendBatch(site, one)
      const plain = expected.get(one.title)
      const difference = expectedDifference(one.title)
      if (difference === undefined) expect(response).toEqual(plain)
      else {
        expect(response, 'no longer different: take it off the list').not.toEqual(plain)
        difference.compare(response, plain as BatchResponse)
      }
    })
  })
})
