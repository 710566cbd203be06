import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import TrellisCacheHandler from '../../../packages/next/cache-handler.js'
import { purges } from '../../../packages/next/purges.js'
import { underWay } from '../../../packages/next/under-way.js'
import functions from '../../../packages/next/use-cache-handler.js'
import { createLatch } from '../../support/latch.ts'
import { pause } from '../../support/origin.ts'

const pages = new TrellisCacheHandler()
const ofPage = { kind: 'APP_PAGE' }
const page = { kind: 'APP_PAGE', html: '', headers: { 'x-next-cache-tags': 'x' } }

/** As Next.js: each request is for work of its own. */
const server = createServer((request, response) => {
  const work = works.get(request.url ?? '')
  if (work !== undefined) void work(response)
})
const works = new Map<string, (response: ServerResponse) => Promise<void>>()

beforeAll(async () => {
  purges.purgeAll()
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

let asked = 0
/** Does `begin` in a request; `go` lets it go on with `end`. */
const request = async (
  begin: (response: ServerResponse) => Promise<unknown>,
  end: (response: ServerResponse) => Promise<unknown>,
  headers: Record<string, string> = {},
) => {
  asked += 1
  const path = `/${asked}`
  const [begun, going, ended] = [createLatch(), createLatch(), createLatch()]
  works.set(path, async (response) => {
    await begin(response)
    begun.open()
    await going.opened
    await end(response)
    ended.open()
  })
  const { port } = server.address() as AddressInfo
  const reader = new AbortController()
  const answered = fetch(`http://127.0.0.1:${port}${path}`, { signal: reader.signal, headers }).then(
    (response) => response.text(),
    () => 'gone',
  )
  await begun.opened
  return {
    answered,
    leave: () => reader.abort(),
    go: async () => {
      going.open()
      await ended.opened
    },
  }
}

const ask = (key: string) => () => pages.get(key, ofPage)
const render = (key: string) => async (response: ServerResponse) => {
  await pages.set(key, page, ofPage)
  response.end('rendered')
}
const run = async (key: string): Promise<void> => {
  const value = new Blob(['result']).stream()
  const entry = { value, tags: ['x'], stale: 0, timestamp: Date.now(), revalidate: 900, expire: 3600 }
  await functions.set(key, Promise.resolve(entry))
}

/** A purge of x as the route carries it out. */
const purge = (signal = new AbortController().signal) => {
  const state = { purges: 0, isConfirmed: false, confirmed: Promise.resolve() }
  const carryOut = (): void => {
    state.purges += 1
    purges.purge(['x'])
  }
  state.confirmed = underWay.purged(carryOut, signal).then(() => {
    state.isConfirmed = true
  })
  return state
}
/** Longer than the interval at which a purge looks. */
const isStillWaiting = async (state: { isConfirmed: boolean }): Promise<boolean> => {
  await pause(50)
  return !state.isConfirmed
}

test('a purge waits for nothing while nothing is under way', async () => {
  const state = purge()
  await new Promise((resolve) => setImmediate(resolve))
  expect(state).toMatchObject({ purges: 1, isConfirmed: true })
})

test('a purge waits for a page that began before it, and another purge too', async () => {
  const reader = await request(ask('/a'), render('/a'))
  const [first, second] = [purge(), purge()]
  expect([await isStillWaiting(first), await isStillWaiting(second)]).toEqual([true, true])
  await reader.go()
  await Promise.all([first.confirmed, second.confirmed])
  expect(first.purges).toBe(1)
  expect(await reader.answered).toBe('rendered')
})

test('a purge does not wait for what began after it', async () => {
  const before = await request(ask('/b'), render('/b'))
  const state = purge()
  const after = await request(ask('/c'), render('/c'))
  await before.go()
  await state.confirmed
  await after.go()
})

test('a page that fails, or is not kept, ends with its response', async () => {
  const reader = await request(ask('/d'), async (response) => {
    response.statusCode = 500
    response.end()
  })
  const state = purge()
  expect(await isStillWaiting(state)).toBe(true)
  await reader.go()
  await state.confirmed
})

test('a page of which a reader has a part is not joined any longer', async () => {
  const reader = await request(
    async (response) => {
      await pages.get('/e', ofPage)
      response.write('shell')
    },
    async (response) => response.end(),
  )
  await purge().confirmed
  await reader.go()
})

test('what failed for a reader who has gone away is not waited for without end', async () => {
  const reader = await request(ask('/f'), async () => {})
  reader.leave()
  await reader.answered
  await purge().confirmed
  await reader.go()
})

test('a function is waited for while its page is sent; what may have joined it is purged, and waited for too', async () => {
  const reader = await request(
    async (response) => {
      response.write('shell')
      await functions.get('f', [])
    },
    async (response) => {
      await run('f')
      response.end()
    },
  )
  const state = purge()
  const joined = await request(ask('/h'), render('/h'))
  expect(await isStillWaiting(state)).toBe(true)
  await reader.go()
  await expect.poll(() => state.purges).toBe(2)
  expect(await isStillWaiting(state)).toBe(true)
  await joined.go()
  await state.confirmed
  expect(await pages.get('/h', ofPage)).toBeNull()
})

test('a function that fails ends with the response, and nothing more is waited for', async () => {
  const reader = await request(
    () => functions.get('g', []),
    async (response) => response.end(),
  )
  const state = purge()
  expect(await isStillWaiting(state)).toBe(true)
  await reader.go()
  await state.confirmed
  expect(state.purges).toBe(1)
})

const past = { ...ofPage, cacheControl: { revalidate: 0 } }

test('a page past its time is waited for until it has been made again, after its response too', async () => {
  await pages.get('/i', ofPage)
  await pages.set('/i', page, past)
  const reader = await request(
    async (response) => {
      await pages.get('/i', ofPage)
      response.end()
    },
    () => pages.set('/i', page, past),
  )
  await reader.answered
  const state = purge()
  expect(await isStillWaiting(state)).toBe(true)
  await reader.go()
  await state.confirmed
})

test('a prefetch has no page made again', async () => {
  await pages.get('/j', ofPage)
  await pages.set('/j', page, past)
  const reader = await request(ask('/j'), async (response) => response.end(), { 'next-router-prefetch': '1' })
  await purge().confirmed
  await reader.go()
})

test('a purge whose sender has gone away waits no longer', async () => {
  const reader = await request(ask('/k'), render('/k'))
  const sender = new AbortController()
  const state = purge(sender.signal)
  expect(await isStillWaiting(state)).toBe(true)
  sender.abort()
  await state.confirmed
  await reader.go()
})
