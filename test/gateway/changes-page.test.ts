import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { blocksOf } from '../support/shown-commands.ts'

const token = 'token-of-the-shop-service'
const product = '/shop/products?page=1'

let shop: Origin
let gateway: TestGateway
let page: string

beforeAll(async () => {
  page = await readFile('docs/changes.md', 'utf8')
  shop = await startOrigin((request, wire) =>
    wire.respond({
      headers: {
        'Content-Type': 'text/plain',
        'Cache-Control': 'max-age=600',
        'Surrogate-Key': 'product-12',
      },
      content: request.target,
    }),
  )
  gateway = await startTestGateway({
    services: {
      shop: {
        contract: 'open',
        mount: '/shop',
        upstream: { targets: [shop.origin] },
        cache: { profile: 'rfc-shared-cache' },
        changes: { token },
      },
    },
  })
})
closeAfterAll(() => [gateway, shop])

const status = async (path: string): Promise<string> => {
  const response = await fetch(gateway.publicAddress + path)
  await response.text()
  return response.headers.get('cache-status') ?? ''
}

const run = async (command: string, ...args: readonly string[]): Promise<string> => {
  const env = { ...process.env, TRELLIS_ADMIN: gateway.adminAddress, TRELLIS_TOKEN: token }
  return (await promisify(execFile)(command, [...args], { env })).stdout
}

test('the example in the shell drops what it names', async () => {
  await status(product)
  expect(await status(product)).toContain('hit')
  const [example = ''] = blocksOf(page, 'sh')
  expect(example.trim().split('\n').length).toBeLessThanOrEqual(10)
  expect(JSON.parse(await run('bash', '-c', example))).toMatchObject({ dropped: 1 })
  expect(await status(product)).not.toContain('hit')
})

test('the example for Node drops what it names, and reports a refusal', async () => {
  await status(product)
  expect(await status(product)).toContain('hit')
  const [example = ''] = blocksOf(page, 'js')
  await run(process.execPath, '--input-type=module', '-e', example)
  expect(await status(product)).not.toContain('hit')
  const refused = example.replaceAll("'product-12'", '12')
  await expect(run(process.execPath, '--input-type=module', '-e', refused)).rejects.toThrow(
    'not dropped: 400',
  )
})
