import { afterEach, expect, test } from 'vitest'
import { type Companion, startCompanion } from '../support/companion.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'

const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})

type Tree = { readonly [key: string]: unknown }

const rules = [{ match: 'GET /site/v2/**', ttl: '1s', staleIfError: '1h' }]

const start = async (
  changes: Tree = {},
  more: Tree = {},
): Promise<{ companion: Companion; gateway: TestGateway }> => {
  const companion = await startCompanion()
  opened.push(companion)
  const service = siteService(companion.origin.origin, {
    cache: { rules },
    changes: { token: companion.token, poll: '200ms', ...changes },
    ...more,
  })
  const gateway = await startTestGateway({ services: { blog: service } })
  opened.push(gateway)
  return { companion, gateway }
}

const site = '/index.php/site-json/site/v2'

const read = async ({ publicAddress }: TestGateway, path = '/posts/1') => {
  const response = await fetch(`${publicAddress}${site}${path}`)
  const body = (await response.json()) as { title: { rendered: string } }
  return { response, title: body.title?.rendered, status: response.headers.get('cache-status') ?? '' }
}

const state = async (gateway: TestGateway): Promise<string> => {
  for (const one of ['cold', 'heard', 'behind', 'silent'])
    if ((await gateway.metric('trellis_changes_state', `state="${one}"`)) === 1) return one
  return 'none'
}

const heard = (gateway: TestGateway) => expect.poll(() => state(gateway), { timeout: 8_000 }).toBe('heard')
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

test('after the acknowledged push of a change no read returns older data', async () => {
  const { companion, gateway } = await start()
  await heard(gateway)
  await read(gateway)
  expect((await read(gateway)).status).toContain('hit')
  const answer = await companion.push(gateway.adminAddress, companion.write(1))
  expect([answer.status, await answer.json()]).toEqual([200, { sequence: 1, dropped: 1 }])
  expect((await read(gateway)).title).toBe('v2')
})

test('a change that is only in the log is seen within the poll interval', async () => {
  const { companion, gateway } = await start()
  await heard(gateway)
  await read(gateway)
  companion.write(1)
  await expect.poll(async () => (await read(gateway)).title, { timeout: 2_000 }).toBe('v2')
})

test('while polls succeed a response is used for longer than the ttl of its rule', async () => {
  const { gateway } = await start()
  await heard(gateway)
  await read(gateway)
  await pause(1_300)
  const later = await read(gateway)
  expect(later.status).toMatch(/hit; ttl=60\d{4}/)
})

test('while polls fail the ttl of the rule holds, and on errors a response counts as fresh until the last poll', async () => {
  const { companion, gateway } = await start()
  await heard(gateway)
  await read(gateway)
  await pause(1_300)
  companion.answerPoll = (_, wire) => wire.respond({ status: 500 })
  await expect.poll(() => state(gateway), { timeout: 5_000 }).toBe('silent')
  companion.change(1)
  expect((await read(gateway)).title).toBe('v2')
})
