import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Companion, nonceOf, postChange, startCompanion } from '../support/companion.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'

const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})

const site = '/index.php/site-json/site/v2'

const startGateway = async (companion: Companion): Promise<TestGateway> => {
  const gateway = await startTestGateway({
    services: {
      blog: siteService(companion.origin.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
        changes: { token: companion.token, poll: '150ms' },
      }),
    },
  })
  opened.push(gateway)
  return gateway
}

const start = async (): Promise<{ companion: Companion; gateway: TestGateway }> => {
  const companion = await startCompanion()
  opened.push(companion)
  const gateway = await startGateway(companion)
  await heard(gateway)
  return { companion, gateway }
}

const read = async ({ publicAddress }: TestGateway, id = 1): Promise<string> => {
  const response = await fetch(`${publicAddress}${site}/posts/${id}`)
  return ((await response.json()) as { title: { rendered: string } }).title.rendered
}

const isIn = (gateway: TestGateway, state: string): Promise<number> =>
  gateway.metric('trellis_changes_state', `state="${state}"`)
const becomes = (gateway: TestGateway, state: string) =>
  expect.poll(() => isIn(gateway, state), { interval: 20 }).toBe(1)
const heard = (gateway: TestGateway) => becomes(gateway, 'heard')

const drops = (gateway: TestGateway, reason: string): Promise<number> =>
  gateway.metric('trellis_changes_service_drops_total', `reason="${reason}"`)

/** The response of a post comes from the cache, and is older than a change that was not reported. */
const holdsOld = async (companion: Companion, gateway: TestGateway): Promise<void> => {
  await read(gateway)
  companion.change(1)
  expect(await read(gateway)).toBe('v1')
}

const showsNew = (gateway: TestGateway) => expect.poll(() => read(gateway), { interval: 20 }).toBe('v2')

describe('everything of the service is dropped when the log shows that changes may have been missed', () => {
  test.each<[string, string, (companion: Companion) => void]>([
    [
      'new-log',
      'a log of another incarnation',
      (companion) => {
        companion.incarnation = 'abc123'
      },
    ],
    [
      'went-back',
      'a log that was restored',
      (companion) => {
        companion.rows.clear()
        companion.last = 1
      },
    ],
    [
      'truncated',
      'a log without the rows after the last poll',
      (companion) => {
        companion.rows.clear()
        companion.first = 900
        companion.last = 950
      },
    ],
    [
      'fingerprint',
      'another version of a plugin',
      (companion) => {
        companion.fingerprint = 'f2'
      },
    ],
    [
      'unfinished-request',
      'a PHP request that ended without telling what it changed',
      (companion) => {
        companion.last += 1
        companion.rows.set(companion.last, { sequence: companion.last, state: 'dead' })
      },
    ],
    [
      'gap',
      'a row that stays missing',
      (companion) => {
        companion.last += 2
        companion.rows.set(companion.last, { sequence: companion.last, state: 'closed', changes: [] })
      },
    ],
  ])('%s: %s', async (reason, _, disturb) => {
    const { companion, gateway } = await start()
    for (const id of [2, 2, 2]) companion.write(id)
    await expect.poll(() => companion.polls.at(-1)?.get('trellis-changes')).toBe('3')
    await holdsOld(companion, gateway)
    const before = await drops(gateway, reason)
    disturb(companion)
    await showsNew(gateway)
    expect((await drops(gateway, reason)) - before).toBe(1)
    await heard(gateway)
  })

  /** Puts other rows in place of the last ones, as writes to a database do that was restored from a copy. */
  const writeAgain = (companion: Companion, kept: number, count: number): void => {
    for (const sequence of [...companion.rows.keys()]) if (sequence > kept) companion.rows.delete(sequence)
    companion.last = kept
    for (let n = 0; n < count; n += 1) companion.write(2)
  }

  test.each([1, 2, 3, 9])('a log that was restored, and has %i rows of its own since then', async (count) => {
    const { companion, gateway } = await start()
    for (const id of [2, 2, 2]) companion.write(id)
    await expect.poll(() => companion.polls.at(-1)?.get('trellis-changes')).toBe('3')
    await holdsOld(companion, gateway)
    writeAgain(companion, 1, count)
    await showsNew(gateway)
    expect((await drops(gateway, 'new-log')) + (await drops(gateway, 'went-back'))).toBe(1)
    await heard(gateway)
  })

  test('a log that was restored before a poll has read the row of a push', async () => {
    const { companion, gateway } = await start()
    companion.write(2)
    await expect.poll(() => companion.polls.at(-1)?.get('trellis-changes')).toBe('1')
    const { respondToPoll } = companion
    companion.respondToPoll = () => undefined
    expect((await companion.push(gateway.adminAddress, companion.write(2))).status).toBe(200)
    await holdsOld(companion, gateway)
    writeAgain(companion, 1, 2)
    companion.respondToPoll = respondToPoll
    await showsNew(gateway)
    expect(await drops(gateway, 'new-log')).toBe(1)
    await heard(gateway)
  })

  test('a push with the highest sequence that there is', async () => {
    const { companion, gateway } = await start()
    companion.write(2)
    const row = { ...companion.write(2), sequence: Number.MAX_SAFE_INTEGER }
    expect((await companion.push(gateway.adminAddress, row)).status).toBe(200)
    await expect.poll(() => drops(gateway, 'new-log')).toBe(1)
    await heard(gateway)
    await holdsOld(companion, gateway)
    companion.write(1)
    await expect.poll(() => read(gateway), { interval: 20 }).toBe('v3')
  })

  test('a change of a kind that is not known', async () => {
    const { companion, gateway } = await start()
    await holdsOld(companion, gateway)
    companion.last += 1
    const changes = [{ kind: 'menu', id: 1 }]
    companion.rows.set(companion.last, { sequence: companion.last, state: 'closed', changes })
    await showsNew(gateway)
  })
})

test('a row that is committed after a later one is applied', async () => {
  const { companion, gateway } = await start()
  await holdsOld(companion, gateway)
  const late = companion.last + 1
  companion.last += 2
  companion.rows.set(late + 1, { sequence: late + 1, state: 'closed', changes: [postChange(3)] })
  await becomes(gateway, 'behind')
  companion.rows.set(late, { sequence: late, state: 'closed', changes: [postChange(1)] })
  await showsNew(gateway)
  await heard(gateway)
  expect(await drops(gateway, 'gap')).toBe(0)
})

test('the changes of a PHP request that was still writing are applied when it has ended', async () => {
  const { companion, gateway } = await start()
  await read(gateway)
  const open = companion.last + 1
  companion.last += 1
  companion.rows.set(open, { sequence: open, state: 'open' })
  for (let more = 0; more < 5; more += 1) companion.write(2)
  await expect.poll(() => companion.polls.at(-1)?.get('trellis-changes')).toBe(String(companion.last))
  companion.change(1)
  companion.rows.set(open, { sequence: open, state: 'closed', changes: [postChange(1)] })
  await showsNew(gateway)
})

test('a response that is fetched while a PHP request writes is not stored', async () => {
  const { companion, gateway } = await start()
  companion.last += 1
  companion.rows.set(companion.last, { sequence: companion.last, state: 'open' })
  const responded = companion.polls.length + 2
  await expect.poll(() => companion.polls.length).toBeGreaterThan(responded)
  for (const version of ['v1', 'v2', 'v3']) {
    expect(await read(gateway)).toBe(version)
    companion.change(1)
  }
  companion.rows.set(companion.last, { sequence: companion.last, state: 'closed', changes: [] })
  await expect
    .poll(async () => {
      const response = await fetch(`${gateway.publicAddress}${site}/posts/1`)
      return response.headers.get('cache-status')
    })
    .toContain('hit')
})

test('a response that is fetched while a read makes what its own response shows is stored', async () => {
  const { companion, gateway } = await start()
  companion.last += 1
  companion.rows.set(companion.last, { sequence: companion.last, state: 'open', reads: true })
  const responded = companion.polls.length + 2
  await expect.poll(() => companion.polls.length).toBeGreaterThan(responded)
  await holdsOld(companion, gateway)
  companion.rows.set(companion.last, { sequence: companion.last, state: 'closed', changes: [postChange(1)] })
  await showsNew(gateway)
})

test('a PHP request that hangs while it writes is named in the log and on the status page, with what to do', async () => {
  const companion = await startCompanion()
  opened.push(companion)
  const changes = { token: companion.token, poll: '150ms' }
  const gateway = await startGatewayProcess({
    log: { level: 'info' },
    services: { blog: siteService(companion.origin.origin, { changes }) },
  })
  opened.push({ close: gateway.kill })
  const states = () => logLinesOf(gateway.program, 'feed-state')
  await expect.poll(states).toContainEqual(expect.objectContaining({ to: 'heard' }))
  const notices = async (): Promise<unknown> => {
    const report = (await (await fetch(`${gateway.adminOrigin}/status`)).json()) as { notices: unknown }
    return report.notices
  }
  const open = companion.last + 1
  companion.last = open
  companion.rows.set(open, { sequence: open, state: 'open' })
  const hanging = { subject: 'blog', text: expect.stringContaining('Look for a process that hangs') }
  await expect.poll(notices).toContainEqual(hanging)
  // A log line comes through a pipe.
  await expect.poll(states).toContainEqual(
    expect.objectContaining({
      service: 'blog',
      to: 'behind',
      cause: 'request-still-writes',
      detail: expect.stringContaining('request_terminate_timeout'),
    }),
  )
  companion.rows.set(open, { sequence: open, state: 'closed', changes: [] })
  await expect.poll(notices).not.toContainEqual(hanging)
})

test('a log of several responses is read to its end', async () => {
  const { companion, gateway } = await start()
  await holdsOld(companion, gateway)
  companion.maxRows = 3
  for (let more = 0; more < 10; more += 1) companion.write(2)
  companion.last += 1
  companion.rows.set(companion.last, { sequence: companion.last, state: 'closed', changes: [postChange(1)] })
  await showsNew(gateway)
  await heard(gateway)
  expect(await drops(gateway, 'gap')).toBe(0)
})

test('changes that were missed while polls failed are applied afterwards, without dropping everything', async () => {
  const { companion, gateway } = await start()
  await read(gateway, 1)
  await read(gateway, 3)
  companion.respondToPoll = (_, wire) => wire.reset()
  companion.write(1)
  await becomes(gateway, 'silent')
  await expect
    .poll(() => gateway.metric('trellis_changes_poll_failures_total', 'unreachable'))
    .toBeGreaterThan(0)
  companion.change(3)
  companion.respondToPoll = undefined
  await showsNew(gateway)
  await heard(gateway)
  expect(await read(gateway, 3)).toBe('v1')
})

test.each<[string, NonNullable<Companion['respondToPoll']>]>([
  ['a page', (_, wire) => wire.respond({ headers: { 'Content-Type': 'text/html' }, content: '<html>' })],
  ['not found', (_, wire) => wire.respond({ status: 404, content: '{}' })],
  ['a redirect', (_, wire) => wire.respond({ status: 301, headers: { Location: '/' } })],
  ['rows that are none', (_, wire) => wire.respond({ content: '{"incarnation":"a","rows":{}}' })],
])(
  'a WordPress that answers a poll with %s has no companion, and nothing is trusted',
  async (_, response) => {
    const companion = await startCompanion()
    opened.push(companion)
    companion.respondToPoll = response
    const gateway = await startGateway(companion)
    await expect
      .poll(() => gateway.metric('trellis_changes_poll_failures_total', 'no-companion'))
      .toBeGreaterThan(1)
    expect(await isIn(gateway, 'cold')).toBe(1)
  },
)

const restarting = (more: object) => (): object => ({
  incarnation: 'ab',
  first: 1,
  last: 3,
  fingerprint: 'f',
  rows: [],
  more: false,
  ...more,
})
const anyIncarnation = () => randomBytes(8).toString('hex')

test.each<[string, () => object]>([
  ['has another incarnation', () => restarting({ incarnation: anyIncarnation() })()],
  ['says that more follows', restarting({ more: true })],
  ['begins behind its end', restarting({ first: Number.MAX_SAFE_INTEGER })],
])('a log that %s in each response is read twice at most in one poll', async (_, content) => {
  const companion = await startCompanion()
  opened.push(companion)
  companion.respondToPoll = ({ target }, wire) =>
    wire.respond({ content: JSON.stringify({ ...content(), nonce: nonceOf(target) }) })
  const gateway = await startGateway(companion)
  const began = Date.now()
  await expect.poll(() => companion.polls.length).toBeGreaterThan(5)
  // One poll each 150 ms.
  expect(companion.polls.length).toBeLessThan(4 + ((Date.now() - began) / 150) * 2)
  expect(await isIn(gateway, 'heard')).toBe(0)
})

test('a gateway that starts again begins with what the log says then', async () => {
  const { companion, gateway } = await start()
  companion.write(1)
  await showsNew(gateway)
  await gateway.close()
  const next = await startGateway(companion)
  expect(await read(next)).toBe('v2')
  companion.write(1)
  await expect.poll(() => read(next)).toBe('v3')
})

test('/readyz lists a service whose changes are not known, and stays ready', async () => {
  const { companion, gateway } = await start()
  const ready = async () => {
    const response = await fetch(`${gateway.adminAddress}/readyz`)
    return { status: response.status, ...((await response.json()) as { degraded: unknown }) }
  }
  await expect.poll(ready).toMatchObject({ status: 'ready', degraded: [] })
  companion.respondToPoll = (_, wire) => wire.respond({ status: 500 })
  await becomes(gateway, 'silent')
  expect(await ready()).toMatchObject({ degraded: [{ reason: 'changes', service: 'blog' }] })
})
