import { get } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway({})
})
afterAll(() => gateway.close())

/** With the content as it was sent. */
const fetched = (path: string, coding: string) =>
  new Promise<{ coding: string | undefined; vary: string | undefined; content: Buffer }>(
    (resolve, reject) => {
      get(gateway.adminAddress + path, { headers: { 'accept-encoding': coding } }, async (response) => {
        const content = Buffer.concat(await response.toArray())
        const { 'content-encoding': sent, vary, 'content-length': length } = response.headers
        expect(Number(length)).toBe(content.length)
        resolve({ coding: sent, vary, content })
      }).on('error', reject)
    },
  )

test.each(['/', '/status/page.js', '/status/page.css', '/status', '/history', '/metrics'])(
  '%s is sent in gzip to those who accept it',
  async (path) => {
    const coded = await fetched(path, 'gzip, br')
    expect(coded.coding).toBe('gzip')
    expect(coded.vary).toContain('Accept-Encoding')
    expect(gunzipSync(coded.content).length).toBeGreaterThan(coded.content.length)
    for (const refused of ['identity', 'gzip;q=0'])
      expect((await fetched(path, refused)).coding, refused).toBeUndefined()
  },
)

test('a short response and one with an entity tag are sent as they are', async () => {
  expect((await fetched('/livez', 'gzip')).coding).toBeUndefined()
  expect((await fetched('/openapi.json', 'gzip')).coding).toBeUndefined()
})
