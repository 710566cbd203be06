import { describe, expect, test, vi } from 'vitest'
import {
  type ChangeFeeds,
  createChangeFeeds,
  type FeedService,
} from '../../../../src/wordpress/changes/change-feeds.ts'
import type { ChangeEvent } from '../../../../src/wordpress/changes/feed-state.ts'
import {
  type ChangeLog,
  keyOf,
  signatureOf,
  verifiedToken,
} from '../../../../src/wordpress/changes/read-changes.ts'
import { PollError } from '../../../../src/wordpress/changes/service-feed.ts'

const token = 'token-of-the-service'

type Scene = { feeds: ChangeFeeds; events: ChangeEvent[]; pass(ms: number): void; now(): number }

const scene = (): Scene => {
  let ms = 1_000_000
  const events: ChangeEvent[] = []
  const clock = { now: () => ms, monotonic: () => ms }
  const feeds = createChangeFeeds({
    clock,
    random: () => 0,
    report: (event) => events.push(event),
    startsLate: () => false,
  })
  return {
    feeds,
    events,
    pass: (more) => {
      ms += more
    },
    now: () => ms,
  }
}

const silent: FeedService['ports'] = {
  ask: async () => {
    throw new PollError('unreachable')
  },
  apply: async () => 0,
  quarantine: () => () => undefined,
  tell: () => undefined,
  positions: undefined,
}

const service = (more: Partial<FeedService> = {}): FeedService => ({
  name: 'blog',
  token,
  pollMs: 0,
  identity: 'one',
  ports: silent,
  applyPlain: async () => 3,
  ...more,
})

const plain = (feeds: ChangeFeeds, body: object = { all: true }) =>
  feeds.receive({
    target: '/changes',
    signature: undefined,
    authorization: `Bearer ${token}`,
    body: Buffer.from(JSON.stringify(body)),
  })

test('a token may report changes 300 times at once and 100 times a second', async () => {
  const { feeds, pass } = scene()
  feeds.use([service()])
  const kinds = async (count: number): Promise<number> => {
    let granted = 0
    for (let one = 0; one < count; one += 1) if ((await plain(feeds)).kind === 'dropped') granted += 1
    return granted
  }
  expect(await kinds(400)).toBe(300)
  pass(1_000)
  expect(await kinds(200)).toBe(100)
  expect(await plain(feeds)).toMatchObject({ kind: 'refused', reason: 'too-many' })
})

test('a request is not acknowledged when the other instances cannot be reached', async () => {
  const { feeds } = scene()
  feeds.use([service({ applyPlain: async () => 'unacknowledged' })])
  expect(await plain(feeds)).toMatchObject({ kind: 'refused', reason: 'not-spread' })
})

test('a push reaches every service with its token', async () => {
  const { feeds, now } = scene()
  const reached: string[] = []
  const named = (name: string): FeedService =>
    service({
      name,
      ports: {
        ...silent,
        apply: async () => {
          reached.push(name)
          return 2
        },
      },
    })
  feeds.use([named('blog'), named('pages'), { ...named('shop'), token: 'another-token-of-16' }])
  const body = Buffer.from('{"incarnation":"ab","sequence":3,"changes":[{"kind":"user","id":1}]}')
  const signature = signatureOf(token, { method: 'POST', target: '/changes', body }, now())
  const request = { target: '/changes', signature, authorization: undefined, body }
  expect(await feeds.receive(request)).toEqual({ kind: 'dropped', sequence: 3, entries: 4 })
  expect(reached).toEqual(['blog', 'pages'])
})

describe('a push', () => {
  const pushTo = ({ feeds, now }: Scene, push: object) => {
    const body = Buffer.from(JSON.stringify({ incarnation: 'ab', ...push }))
    const signature = signatureOf(token, { method: 'POST', target: '/changes', body }, now())
    const request = { target: '/changes', signature, authorization: undefined, body }
    return { again: () => feeds.receive(request), response: feeds.receive(request) }
  }
  const counted = () => {
    const reached: string[] = []
    const apply: FeedService['ports']['apply'] = async (changes) => {
      reached.push(...changes.map((change) => (change.kind === 'option' ? change.name : change.kind)))
      return 1
    }
    return { reached, ports: { ...silent, apply } }
  }
  const changes = [{ kind: 'option', name: 'blogname' }]

  test('that is copied on the way and sent again and again takes nothing from the rate of others', async () => {
    const at = scene()
    const { ports } = counted()
    at.feeds.use([service({ ports })])
    const first = pushTo(at, { sequence: 1, changes })
    expect(await first.response).toMatchObject({ kind: 'dropped', entries: 1 })
    for (let n = 0; n < 1_000; n += 1)
      expect(await first.again()).toMatchObject({ kind: 'dropped', entries: 0 })
    expect(await pushTo(at, { sequence: 2, changes }).response).toMatchObject({ kind: 'dropped', entries: 1 })
  })

  test('that is sent a second time drops nothing again', async () => {
    const { reached, ports } = counted()
    const at = scene()
    at.feeds.use([service({ ports })])
    const { response, again } = pushTo(at, { sequence: 7, changes })
    await response
    expect(await again()).toEqual({ kind: 'dropped', sequence: 7, entries: 0 })
    expect(reached).toEqual(['blogname'])
  })

  test('of a restored log is applied, though an earlier push had the same row and the same changes', async () => {
    const { reached, ports } = counted()
    const at = scene()
    at.feeds.use([service({ ports })])
    await pushTo(at, { sequence: 7, changes }).response
    at.pass(60_000)
    expect(await pushTo(at, { sequence: 7, changes }).response).toMatchObject({ entries: 1 })
    expect(reached).toEqual(['blogname', 'blogname'])
  })

  test.each([
    ['can be read', changes, 'blogname'],
    ['cannot be read', [{ kind: 'unknown' }], 'all'],
  ])(
    'without a row that %s is applied each time, but not half a minute after the first',
    async (_, content, name) => {
      const one = counted()
      const other = counted()
      const at = scene()
      const beside = scene()
      const tell: FeedService['ports']['tell'] = (message) => beside.feeds.receiveMessage(message)
      at.feeds.use([service({ ports: { ...one.ports, tell } })])
      beside.feeds.use([service({ ports: other.ports })])
      const { response, again } = pushTo(at, { sequence: 0, changes: content })
      const copy = pushTo(beside, { sequence: 0, changes: content })
      await response
      await again()
      await copy.response
      expect([one.reached, other.reached]).toEqual([[name, name], [name]])
      for (let n = 0; n < 20; n += 1) {
        at.pass(10_000)
        beside.pass(10_000)
        await again()
        await copy.again()
      }
      expect(one.reached.length + other.reached.length).toBeLessThan(12)
      const before = one.reached.length
      await pushTo(at, { sequence: 0, changes: content }).response
      expect(one.reached.length).toBe(before + 1)
    },
  )

  test('whose objects are nested too deeply is refused, and everything is dropped', async () => {
    const { reached, ports } = counted()
    const at = scene()
    at.feeds.use([service({ ports })])
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const body = Buffer.from(
      `{"incarnation":"ab","sequence":7,"changes":[{"kind":"post","id":1,"type":"post","before":{"terms":${deep}}}]}`,
    )
    const signature = signatureOf(token, { method: 'POST', target: '/changes', body }, at.now())
    const request = { target: '/changes', signature, authorization: undefined, body }
    expect(await at.feeds.receive(request)).toMatchObject({ kind: 'refused', reason: 'unreadable' })
    expect(reached).toEqual(['all'])
  })

  test.each([
    ['that cannot be read', { sequence: 7, changes: [{ kind: 'unknown' }] }],
    ['whose row cannot be read', { sequence: 'seven', changes }],
  ])('%s drops everything once, however often it is copied and sent again', async (_, content) => {
    const { reached, ports } = counted()
    const at = scene()
    at.feeds.use([service({ ports })])
    const { response, again } = pushTo(at, content)
    expect(await response).toMatchObject({ kind: 'refused', reason: 'unreadable' })
    for (let n = 0; n < 1_000; n += 1)
      expect(await again()).toMatchObject({ kind: 'refused', reason: 'unreadable' })
    expect(reached).toEqual(['all'])
    expect(await pushTo(at, { sequence: 8, changes }).response).toMatchObject({ kind: 'dropped', entries: 1 })
  })

  test('that cannot be read and was not spread to all instances drops everything again', async () => {
    const { reached, ports } = counted()
    const at = scene()
    let isHeard = false
    const apply: typeof ports.apply = async (given) => {
      const entries = await ports.apply(given)
      return isHeard ? entries : 'unacknowledged'
    }
    at.feeds.use([service({ ports: { ...ports, apply } })])
    const { response, again } = pushTo(at, { sequence: 7, changes: [{ kind: 'unknown' }] })
    expect(await response).toMatchObject({ reason: 'not-spread' })
    isHeard = true
    expect(await again()).toMatchObject({ reason: 'unreadable' })
    expect(await again()).toMatchObject({ reason: 'unreadable' })
    expect(reached).toEqual(['all', 'all'])
  })

  test('that cannot be read is known to the other processes of the port', async () => {
    const one = counted()
    const other = counted()
    const at = scene()
    const beside = scene()
    const tell: FeedService['ports']['tell'] = (message) => beside.feeds.receiveMessage(message)
    at.feeds.use([service({ ports: { ...one.ports, tell } })])
    beside.feeds.use([service({ ports: other.ports })])
    const content = { sequence: 7, changes: [{ kind: 'unknown' }] }
    await pushTo(at, content).response
    expect(await pushTo(beside, content).response).toMatchObject({ kind: 'refused', reason: 'unreadable' })
    expect([one.reached, other.reached]).toEqual([['all'], []])
  })
})

const log = (last: number): ChangeLog => ({
  incarnation: 'ab',
  first: 1,
  last,
  fingerprint: '',
  rows: [],
  more: false,
})

const writing = (...sequences: readonly number[]): ChangeLog => ({
  ...log(7),
  rows: sequences.map((sequence) => ({ sequence, check: '', state: 'open', reads: false })),
})

/** Counts how often nothing was stored, and which of these times have ended. */
const countedQuarantine = () => {
  const counts = { begun: 0, ended: [] as number[] }
  const quarantine: FeedService['ports']['quarantine'] = () => {
    counts.begun += 1
    const nth = counts.begun
    return () => counts.ended.push(nth)
  }
  return { counts, quarantine }
}

test('while PHP requests write nothing is stored, until each of them has reported', async () => {
  const { feeds, now } = scene()
  const { counts, quarantine } = countedQuarantine()
  const ask = async () => writing(5, 7)
  feeds.use([service({ pollMs: 60_000, ports: { ...silent, ask, quarantine } })])
  const report = (sequence: number) => {
    const body = Buffer.from(JSON.stringify({ incarnation: 'ab', sequence, changes: [] }))
    const signature = signatureOf(token, { method: 'POST', target: '/changes', body }, now())
    return feeds.receive({ target: '/changes', signature, authorization: undefined, body })
  }
  await expect.poll(() => counts.begun).toBe(1)
  for (const sequence of [4, 5, 6]) await report(sequence)
  expect(counts.ended).toEqual([])
  await report(7)
  expect(counts.ended).toEqual([1])
  feeds.use([])
})

test('while PHP requests write nothing is stored, until a poll finds none', async () => {
  const { feeds } = scene()
  const { counts, quarantine } = countedQuarantine()
  let answer = writing(5)
  const ask = async () => answer
  feeds.use([service({ pollMs: 1, ports: { ...silent, ask, quarantine } })])
  await expect.poll(() => counts.begun).toBeGreaterThan(1)
  expect(counts.ended).toHaveLength(counts.begun - 1)
  answer = writing()
  await expect.poll(() => counts.ended.length).toBe(counts.begun)
  feeds.use([])
})

test('a feed is trusted for two intervals after the last poll was sent', async () => {
  const { feeds, pass, now } = scene()
  const ask = async (): Promise<ChangeLog> => log(0)
  feeds.use([service({ pollMs: 60_000, ports: { ...silent, ask } })])
  const lease = feeds.lease('blog')
  const at = () => ({ now: now(), monotonic: now() })
  await expect.poll(() => lease.isCurrent(at())).toBe(true)
  expect(lease.endedMs(at())).toBe(0)
  pass(119_999)
  expect(lease.isCurrent(at())).toBe(true)
  pass(1)
  expect(lease.isCurrent(at())).toBe(false)
  expect(lease.endedMs(at())).toBe(120_000)
  expect(feeds.statuses()).toEqual([{ service: 'blog', state: 'silent', lagSeconds: 120 }])
  // A clock that was set back does not prolong it.
  expect(lease.isCurrent({ now: now() - 500_000, monotonic: now() })).toBe(false)
  feeds.close()
  expect(lease.isCurrent(at())).toBe(false)
})

test('a poll counts only when its changes were applied in the other processes', async () => {
  const { feeds, events, now } = scene()
  const ask = async (): Promise<ChangeLog> => log(0)
  const apply = async () => 'unacknowledged' as const
  feeds.use([service({ pollMs: 60_000, ports: { ...silent, ask, apply } })])
  await expect.poll(() => events.length).toBeGreaterThan(0)
  expect(events[0]).toEqual({ kind: 'poll-failed', service: 'blog', reason: 'not-spread' })
  expect(feeds.lease('blog').isCurrent({ now: now(), monotonic: now() })).toBe(false)
  feeds.close()
})

test('another token or another upstream begins a feed anew, and everything else goes on', async () => {
  const { feeds, now } = scene()
  const ask = async (): Promise<ChangeLog> => log(0)
  const told = service({ pollMs: 60_000, ports: { ...silent, ask } })
  const isHeard = () => feeds.lease('blog').isCurrent({ now: now(), monotonic: now() })
  feeds.use([told])
  await expect.poll(isHeard).toBe(true)
  feeds.use([{ ...told, ports: silent }])
  expect(isHeard()).toBe(true)
  feeds.use([{ ...told, identity: 'two', ports: silent }])
  expect(isHeard()).toBe(false)
  feeds.use([])
  expect(feeds.statuses()).toEqual([])
})

test('an instance that starts goes on from the position that others have written', async () => {
  const { feeds, now } = scene()
  const asked: number[] = []
  const applied: number[] = []
  const ask = async (after: number): Promise<ChangeLog> => {
    asked.push(after)
    const rows = [41, 42].map((sequence) => ({
      ...{ sequence, check: '' },
      state: 'closed' as const,
      changes: [{ kind: 'user', id: sequence } as const],
    }))
    return { ...log(42), rows: rows.filter(({ sequence }) => sequence > after) }
  }
  const positions = {
    read: async () => ({ incarnation: 'ab', position: 41, newest: undefined, fingerprint: '' }),
    write: async () => undefined,
  }
  const apply: FeedService['ports']['apply'] = async (changes) => {
    for (const change of changes) if (change.kind === 'user') applied.push(change.id)
    return 0
  }
  feeds.use([service({ pollMs: 60_000, ports: { ...silent, ask, apply, positions } })])
  await expect.poll(() => feeds.lease('blog').isCurrent({ now: now(), monotonic: now() })).toBe(true)
  expect([asked, applied]).toEqual([[41], [42]])
  feeds.close()
})

test('an instance checks whether the log has the newest row that another instance has read, also one behind its own position', async () => {
  vi.useFakeTimers()
  try {
    const asked: unknown[] = []
    const ask: FeedService['ports']['ask'] = async (after, incarnation, known) => {
      asked.push([after, incarnation, known])
      return log(3)
    }
    let shared = { incarnation: 'ab', position: 3, newest: { sequence: 3, check: 'c3' }, fingerprint: '' }
    const written: unknown[] = []
    const positions = {
      read: async () => shared,
      write: async (position: unknown) => {
        written.push(position)
      },
    }
    const feeds = createChangeFeeds({
      clock: { now: () => Date.now(), monotonic: () => performance.now() },
      random: () => 0,
      report: () => undefined,
      startsLate: () => false,
    })
    feeds.use([service({ pollMs: 1_000, ports: { ...silent, ask, positions } })])
    await vi.advanceTimersByTimeAsync(500)
    expect(asked.splice(0)).toEqual([[3, 'ab', { sequence: 3, check: 'c3' }]])
    expect(written.at(-1)).toEqual(shared)
    shared = { ...shared, position: 5, newest: { sequence: 5, check: 'c5' } }
    await vi.advanceTimersByTimeAsync(1_000)
    expect(asked.splice(0)).toEqual([[3, 'ab', { sequence: 5, check: 'c5' }]])
    // Of another log.
    shared = { ...shared, incarnation: 'cd', newest: { sequence: 9, check: 'c9' } }
    await vi.advanceTimersByTimeAsync(1_000)
    expect(asked.splice(0)).toEqual([[3, 'ab', { sequence: 5, check: 'c5' }]])
    feeds.close()
  } finally {
    vi.useRealTimers()
  }
})

test('a shared position behind the end of the log is of the log before it was restored', async () => {
  const { feeds, now } = scene()
  const applied: number[] = []
  const ask = async (after: number): Promise<ChangeLog> => {
    const rows = [1, 2].map((sequence) => ({
      ...{ sequence, check: '' },
      state: 'closed' as const,
      changes: [{ kind: 'user', id: sequence } as const],
    }))
    return { ...log(2), rows: rows.filter(({ sequence }) => sequence > after) }
  }
  // Redis does not take the new position.
  const positions = {
    read: async () => ({ incarnation: 'ab', position: 41, newest: undefined, fingerprint: '' }),
    write: async () => {
      throw new Error('not written')
    },
  }
  const apply: FeedService['ports']['apply'] = async (changes) => {
    for (const change of changes) if (change.kind === 'user') applied.push(change.id)
    return 0
  }
  feeds.use([service({ pollMs: 60_000, ports: { ...silent, ask, apply, positions } })])
  await expect.poll(() => feeds.lease('blog').isCurrent({ now: now(), monotonic: now() })).toBe(true)
  expect(applied).toEqual([1, 2])
  feeds.close()
})

test('the signature is the one that is documented', () => {
  const request = { method: 'GET', target: '/?trellis-changes=0', body: '' }
  const text = signatureOf('0123456789abcdef', request, 1_700_000_000_000)
  expect(text).toMatch(/^key=[0-9a-f]{16}, time=1700000000, hmac=[0-9a-f]{64}$/)
  expect(text).toContain(keyOf('0123456789abcdef'))
  expect(verifiedToken(text, request, ['0123456789abcdef'], 1_700_000_000_000).kind).toBe('verified')
})

test('the process that reads the log keeps its interval, and one that receives the result waits longer', async () => {
  vi.useFakeTimers()
  try {
    const asked = { reader: 0, other: 0 }
    const both: ChangeFeeds[] = []
    let ids = 0
    for (const name of ['reader', 'other'] as const) {
      const feeds = createChangeFeeds({
        clock: { now: () => Date.now(), monotonic: () => performance.now() },
        random: () => (ids += 0.1),
        report: () => undefined,
        startsLate: () => name === 'other',
      })
      both.push(feeds)
      const ports: FeedService['ports'] = {
        ...silent,
        ask: async () => {
          asked[name] += 1
          return log(0)
        },
        tell: (message) => {
          for (const one of both) one.receiveMessage(message)
        },
      }
      feeds.use([service({ pollMs: 1_000, ports })])
    }
    await vi.advanceTimersByTimeAsync(10_500)
    // The first contact reads twice.
    expect(asked).toEqual({ reader: 12, other: 0 })
    both[0]?.close()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(asked.other).toBeGreaterThan(2)
    both[1]?.close()
  } finally {
    vi.useRealTimers()
  }
})

test('rows of a restored log are applied, though rows with the same changes were applied before', async () => {
  vi.useFakeTimers()
  try {
    const reached: string[] = []
    let last = 0
    const feeds = createChangeFeeds({
      clock: { now: () => Date.now(), monotonic: () => performance.now() },
      random: () => 0,
      report: () => undefined,
      startsLate: () => false,
    })
    const ask = async (after: number): Promise<ChangeLog> => {
      const sequences = Array.from({ length: last }, (_, index) => index + 1)
      const rows = sequences.map((sequence) => ({
        ...{ sequence, check: '' },
        state: 'closed' as const,
        changes: [{ kind: 'user', id: sequence } as const],
      }))
      return { ...log(last), rows: rows.filter(({ sequence }) => sequence > after) }
    }
    const apply: FeedService['ports']['apply'] = async (changes) => {
      reached.push(...changes.map((change) => (change.kind === 'user' ? `user ${change.id}` : change.kind)))
      return 0
    }
    feeds.use([service({ pollMs: 1_000, ports: { ...silent, ask, apply } })])
    await vi.advanceTimersByTimeAsync(1_500)
    last = 3
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reached.splice(0)).toEqual(['all', 'user 1', 'user 2', 'user 3'])
    last = 1
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reached.splice(0)).toContain('all')
    last = 3
    await vi.advanceTimersByTimeAsync(1_000)
    expect(reached).toEqual(['user 2', 'user 3'])
    feeds.close()
  } finally {
    vi.useRealTimers()
  }
})
