import { Agent, request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { runCommand } from '../support/command.ts'
import { siteService } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: GatewayProcess

beforeAll(async () => {
  origin = await startOrigin((_, wire) =>
    wire.respond({
      headers: { 'Content-Type': 'application/json' },
      content: JSON.stringify({ id: 1, type: 'post' }),
    }),
  )
  gateway = await startGatewayProcess({
    workers: 2,
    log: { level: 'info' },
    services: {
      site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1m' }] } }),
      // Lives in the parent: all workers use the same one.
      plants: { contract: 'plants', mount: '/store' },
    },
  })
})
afterAll(async () => {
  await gateway.stop()
  await origin.close()
})

const root = '/index.php/site-json/site/v2'

/** On its own connection: connections go to the workers in turn. */
const send = (
  path: string,
  options: {
    readonly method?: string
    readonly headers?: Record<string, string>
    readonly content?: string
  } = {},
): Promise<{ status: number; cache: string; text: string }> =>
  new Promise((resolve, reject) => {
    const agent = new Agent()
    const sent = request(
      `${gateway.origin}${path}`,
      { method: options.method ?? 'GET', agent, headers: options.headers ?? {} },
      (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => {
          agent.destroy()
          resolve({
            status: response.statusCode ?? 0,
            cache: String(response.headers['cache-status']),
            text,
          })
        })
      },
    )
    sent.once('error', reject)
    sent.end(options.content)
  })

const admin = async (path: string, content?: unknown): Promise<{ status: number; text: string }> => {
  const response = await fetch(`${gateway.adminOrigin}${path}`, {
    ...(content === undefined
      ? {}
      : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(content) }),
  })
  return { status: response.status, text: await response.text() }
}

const metric = async (start: string): Promise<number> => {
  const { text } = await admin('/metrics')
  const line = text.split('\n').find((one) => one.startsWith(start))
  return Number(line?.slice(line.lastIndexOf(' ') + 1) ?? Number.NaN)
}

const trusting = async (): Promise<void> => {
  while ((await metric('trellis_memory_trusted ')) !== 2) await pause(50)
}

const stored = async (path: string): Promise<number> => {
  const { entries } = JSON.parse((await admin('/cache/entries?limit=100')).text) as {
    entries: { url: string }[]
  }
  return entries.filter(({ url }) => url === path).length
}

/** Repeats until both workers have it, because the test cannot choose the worker. Returns the number of requests. */
const warm = async (path: string): Promise<number> => {
  for (let asked = 1; ; asked += 1) {
    expect((await send(path)).status).toBe(200)
    if ((await stored(path)) === 2) return asked
  }
}

test('the gateway is ready when both workers are, and one scrape adds up their counters', async () => {
  await expect.poll(() => logLinesOf(gateway.program, 'worker-ready')).toHaveLength(2)
  expect(await metric('trellis_workers_ready')).toBe(2)
  await trusting()
  const before = origin.received.length
  const asked = await warm(`${root}/posts/1`)
  expect((await send(`${root}/posts/1`)).cache).toContain('; hit')
  expect(origin.received.length - before).toBe(2)
  const counted =
    'trellis_requests_total{service="site",route="/site/v2/posts/{id}",method="GET",status_class="2xx"'
  expect(await metric(`${counted},cache="hit"`)).toBe(asked - 1)
  expect(await metric(`${counted},cache="miss"`)).toBe(2)
  expect(await metric('trellis_build_info')).toBe(1)
})

test('the status shows for how long the oldest worker has run', async () => {
  const startedAt = (await metric('process_start_time_seconds')) ?? 0
  expect(Date.now() / 1000 - startedAt).toBeLessThan(600)
})

test('lists, counts and purges of stored responses cover both workers', async () => {
  await trusting()
  await warm(`${root}/posts/2`)
  const explained = JSON.parse((await admin(`/explain?url=${root}/posts/2`)).text)
  expect(explained['storedResponses']).toBe(2)
  const selection = { url: `${root}/posts/2` }
  expect(JSON.parse((await admin('/cache/purge', { ...selection, dryRun: true })).text).entries).toBe(2)
  expect(JSON.parse((await admin('/cache/purge', selection)).text).entries).toBe(2)
  const before = origin.received.length
  expect(await stored(`${root}/posts/2`)).toBe(0)
  await warm(`${root}/posts/2`)
  expect(origin.received.length - before).toBe(2)
})

test('a purge with warm makes both workers fetch again what was used', async () => {
  await trusting()
  await warm(`${root}/posts/4`)
  const before = origin.received.length
  const purged = await admin('/cache/purge', { url: `${root}/posts/4`, warm: true })
  expect(JSON.parse(purged.text)).toMatchObject({ entries: 2, warming: 1 })
  await expect.poll(() => stored(`${root}/posts/4`)).toBe(2)
  expect(origin.received.length - before).toBe(2)
})

test('warm --wait names a URL that either worker could not store', async () => {
  await trusting()
  const seen = new Map<string, number>()
  const { script } = origin
  // The first worker that asks for an odd post gets it, the second one does not; nobody gets post 96.
  origin.script = ({ target }, wire) => {
    const times = (seen.get(target) ?? 0) + 1
    seen.set(target, times)
    const headers = { 'Content-Type': 'application/json' }
    const isGone = target.endsWith('/96') || (/[13579]$/.test(target) && times > 1)
    wire.respond({ status: isGone ? 404 : 200, headers, content: '{"id":1,"type":"post"}' })
  }
  const paths = [91, 92, 93, 94, 96].map((id) => `${root}/posts/${id}`)
  const { end, stdout } = await runCommand(['warm', '--wait', ...paths, '--admin', gateway.adminOrigin])
  const failed = [91, 93, 96].map((id) => `${root}/posts/${id}: status 404\n`)
  expect([end, stdout]).toEqual([1, `2 of 5 URLs stored\n${failed.join('')}`])
  expect([...seen.values()]).toEqual([2, 2, 2, 2, 2])
  const again = await runCommand(['warm', '--wait', `${root}/posts/92`, '--admin', gateway.adminOrigin])
  expect([again.end, again.stdout]).toEqual([0, '1 of 1 URL stored\n'])
  origin.script = script
})

test('after a write through one worker the other returns the new state', async () => {
  await trusting()
  await warm(`${root}/posts/3`)
  const headers = { authorization: 'Bearer x', 'content-type': 'application/json' }
  expect((await send(`${root}/posts/3`, { method: 'PUT', headers, content: '{"title":"x"}' })).status).toBe(
    200,
  )
  expect(await stored(`${root}/posts/3`)).toBe(0)
  expect((await send(`${root}/posts/3`)).cache).toContain('fwd=uri-miss')
})

test('all workers share an embedded upstream', async () => {
  const headers = { authorization: 'Bearer x', 'content-type': 'application/json' }
  const content = '{"id":4711,"name":"Strelitzia reginae"}'
  expect((await send('/store/plants', { method: 'POST', headers, content })).status).toBeLessThan(300)
  for (let turn = 0; turn < 4; turn += 1) {
    expect((await send('/store/plants', { headers })).text).toContain('Strelitzia reginae')
  }
})

/** The site of this test answers no index of WordPress. */
const ofStart = { status: 'ready', findings: [{ finding: 'no-wordpress', service: 'site' }] }

test('/readyz of each worker lists what the check at the start has found', async () => {
  const readyz = async () => JSON.parse((await admin('/readyz')).text)
  await expect.poll(readyz).toMatchObject(ofStart)
  for (let turn = 0; turn < 4; turn += 1) expect(await readyz()).toMatchObject(ofStart)
})

test('a reload applies to both workers', async () => {
  expect(JSON.parse((await admin('/reload', {})).text)).toMatchObject({ outcome: 'unchanged' })
  expect(await metric('trellis_config_reloads_total{outcome="unchanged"}')).toBe(2)
})

/** Of each worker that ended: after how long another one takes its place. */
const waitsOfEnded = () => logLinesOf(gateway.program, 'worker-ended').map(({ nextInMs }) => nextInMs)

test('a worker that has served and is killed is counted and replaced at once, and beside it clients lose what was in flight', async () => {
  const statuses: (number | string)[] = []
  let isOver = false
  const honest = (async () => {
    while (!isOver) {
      statuses.push(await send(`${root}/posts/1`).then(({ status }) => status, String))
      await pause(20)
    }
  })()
  const rounds = times(1, 4)
  for (let round = 0; round < rounds; round += 1) {
    const before = logLinesOf(gateway.program, 'worker-ready')
    // Longer than a worker has to serve.
    await pause(1_500)
    // The older one of the two.
    process.kill(Number(before.at(-2)?.['pid']), 'SIGKILL')
    while (logLinesOf(gateway.program, 'worker-ready').length === before.length) await pause(50)
  }
  isOver = true
  await honest
  expect(waitsOfEnded()).toEqual(Array.from({ length: rounds }, () => 0))
  expect(await metric('trellis_worker_ends{end="signal"}')).toBe(rounds)
  expect(JSON.parse((await admin('/readyz')).text)).toMatchObject(ofStart)
  const failed = statuses.filter((status) => status !== 200)
  expect(failed.length, failed.slice(0, 9).join('; ')).toBeLessThanOrEqual(rounds)
  expect(statuses.length).toBeGreaterThan(4 * rounds)
})

test('two workers that are killed at once under load, again and again: both are back at once, readiness is answered when one is, reads resume, and nothing is older than the last write', {
  timeout: 120_000,
}, async () => {
  let version = 0
  let acknowledged = 0
  origin.script = ({ method }, wire) => {
    if (method === 'POST') version += 1
    wire.respond({
      headers: { 'Content-Type': 'application/json' },
      content: JSON.stringify({
        id: 1,
        type: 'post',
        title: { raw: `v${version}`, rendered: `v${version}` },
      }),
    })
  }
  const stale: string[] = []
  let reads = 0
  let isOver = false
  const during = async (work: () => Promise<void>): Promise<void> => {
    // A client of a worker that is killed loses its connection; a worker that begins refuses none.
    while (!isOver) await work().catch(() => pause(5))
  }
  const read = async (): Promise<void> => {
    const atLeast = acknowledged
    const { status, text } = await send(`${root}/posts/1`)
    // What an earlier test has stored shows no version.
    const seen = Number(/"v(\d+)"/.exec(text)?.[1] ?? 0)
    if (status === 200 && seen < atLeast) stale.push(`${seen} after ${atLeast}`)
    if (status === 200) reads += 1
    await pause(20)
  }
  const write = async (): Promise<void> => {
    const headers = { 'Content-Type': 'application/json' }
    const { status, text } = await send(`${root}/posts/1`, {
      method: 'POST',
      headers,
      content: '{"title":"x"}',
    })
    if (status === 200) acknowledged = Math.max(acknowledged, Number(/"v(\d+)"/.exec(text)?.[1]))
    await pause(20)
  }
  /** The parent keeps the admin port open, and a worker answers: nobody does while there is none. */
  const readiness = (): Promise<number> => admin('/readyz').then(({ status }) => status, readiness)
  const load = [read, read, read, read, write].map(during)
  const rounds = times(2, 5)
  for (let round = 0; round < rounds; round += 1) {
    const before = logLinesOf(gateway.program, 'worker-ready')
    // Longer than a worker has to serve.
    await pause(1_500)
    await expect.poll(() => reads).toBeGreaterThan(50 * (round + 1))
    for (const { pid } of before.slice(-2)) process.kill(Number(pid), 'SIGKILL')
    const readsBefore = reads
    // A worker that begins says 503 until it has joined.
    await expect.poll(readiness).toBe(200)
    await expect.poll(() => reads).toBeGreaterThan(readsBefore + 20)
    const back = (): number => logLinesOf(gateway.program, 'worker-ready').length
    await expect.poll(back).toBe(before.length + 2)
  }
  await expect.poll(() => acknowledged).toBeGreaterThan(3)
  isOver = true
  await Promise.all(load)
  expect(waitsOfEnded().slice(-2 * rounds)).toEqual(Array.from({ length: 2 * rounds }, () => 0))
  expect(stale).toEqual([])
})

test('SIGTERM to the parent drains all workers', async () => {
  const pids = logLinesOf(gateway.program, 'worker-ready').map(({ pid }) => Number(pid))
  expect(await gateway.stop()).toBe(0)
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow()
})
