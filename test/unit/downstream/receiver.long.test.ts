import { afterEach, describe, expect, test, vi } from 'vitest'
import { Receiver } from '../../../src/downstream/receiver.ts'
import type { ReceiverInstance } from '../../../src/downstream/receiver-instance.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'

const opened: Receiver[] = []
afterEach(async () => {
  for (const receiver of opened.splice(0)) await receiver.close()
  vi.useRealTimers()
})

const receiverConfig = async (instances: string) => {
  const file = {
    services: {
      blog: {
        contract: 'open',
        mount: '/',
        upstream: { targets: ['http://127.0.0.1:9'] },
        downstream: {
          receivers: [{ type: 'webhook', url: 'http://front.internal/purge', secret: 's', instances }],
        },
      },
    },
  }
  const checked = await checkConfig(JSON.stringify(file), {})
  const config = checked.kind === 'faults' ? undefined : checked.config.services[0]?.downstream?.receivers[0]
  if (config === undefined) throw new Error(JSON.stringify(checked))
  return config
}

/** A receiver whose name resolves to what `addresses` holds, with instances that confirm nothing by themselves. */
const start = async (addresses: string[], instances = 'dns') => {
  let release = (): void => {}
  const hold = (): Promise<void> =>
    new Promise<void>((resolve) => {
      release = resolve
    })
  let resolved = hold()
  const state = {
    failure: undefined as string | undefined,
    lookups: 0,
    joined: [] as (string | undefined)[],
    closed: [] as string[],
    events: [] as string[],
  }
  const lagging = new Set<string>()
  const receiver = new Receiver({
    config: await receiverConfig(instances),
    service: 'blog',
    receiver: 'webhook',
    addressesOf: async () => {
      state.lookups += 1
      await resolved
      if (state.failure !== undefined) throw Object.assign(new Error('lookup'), { code: state.failure })
      return [...addresses]
    },
    create: (address = '') => {
      lagging.add(address)
      return {
        address,
        get isLagging() {
          return lagging.has(address)
        },
        status: () => ({ address }),
        close: async () => void state.closed.push(address),
      } as unknown as ReceiverInstance
    },
    joined: ({ address }) => state.joined.push(address),
    changed: () => undefined,
    report: (event) => state.events.push('reason' in event ? `${event.kind} ${event.reason}` : event.kind),
  })
  opened.push(receiver)
  receiver.start()
  expect(receiver.isLagging).toBe(true)
  if (instances === 'dns')
    expect(receiver.statuses()).toMatchObject([{ isLagging: true, reason: 'not-resolved' }])
  release()
  return {
    receiver,
    state,
    confirm: (address: string) => lagging.delete(address),
    /** The resolver hangs until the returned function is called. */
    hang: () => {
      resolved = hold()
      return () => release()
    },
  }
}

const lookedUpAgain = async ({ state }: Awaited<ReturnType<typeof start>>): Promise<void> => {
  const before = state.lookups
  await expect.poll(() => state.lookups).toBeGreaterThan(before + 1)
}

test('lags until its name is resolved, and until each instance has confirmed', async () => {
  const stage = await start(['10.0.0.1', '10.0.0.2'])
  await expect.poll(() => stage.state.joined).toEqual(['10.0.0.1', '10.0.0.2'])
  stage.confirm('10.0.0.1')
  expect(stage.receiver.isLagging).toBe(true)
  stage.confirm('10.0.0.2')
  expect(stage.receiver.isLagging).toBe(false)
})

test('an instance that joins lags, and is sent everything; one that leaves is closed', async () => {
  const addresses = ['10.0.0.1']
  const stage = await start(addresses)
  await expect.poll(() => stage.state.joined).toEqual(['10.0.0.1'])
  stage.confirm('10.0.0.1')
  addresses.push('10.0.0.2')
  await expect.poll(() => stage.state.joined).toEqual(['10.0.0.1', '10.0.0.2'])
  expect(stage.receiver.isLagging).toBe(true)
  addresses.shift()
  await expect.poll(() => stage.state.closed).toEqual(['10.0.0.1'])
  expect(stage.receiver.instances.map(({ address }) => address)).toEqual(['10.0.0.2'])
})

test('a name that resolves to nothing for a while loses no instance', async () => {
  const stage = await start(['10.0.0.1'])
  await expect.poll(() => stage.state.joined).toEqual(['10.0.0.1'])
  stage.state.failure = 'ENOTFOUND'
  await lookedUpAgain(stage)
  expect(stage.state.closed).toEqual([])
  expect(stage.receiver.instances).toHaveLength(1)
})

test('more than 64 instances are sent nothing: the receiver lags, and says why', async () => {
  const stage = await start(Array.from({ length: 65 }, (_, at) => `10.0.0.${at}`))
  await expect.poll(() => stage.state.joined.length).toBe(64)
  for (let at = 0; at < 64; at += 1) stage.confirm(`10.0.0.${at}`)
  expect(stage.receiver.isLagging).toBe(true)
  expect(stage.receiver.statuses().at(-1)).toMatchObject({ reason: 'too-many-instances' })
})

test('more than 64 instances are not forgotten by a resolver that no longer knows the name', async () => {
  const stage = await start(Array.from({ length: 70 }, (_, at) => `10.0.0.${at}`))
  await expect.poll(() => stage.state.joined.length).toBe(64)
  for (let at = 0; at < 64; at += 1) stage.confirm(`10.0.0.${at}`)
  for (const failure of ['ENOTFOUND', 'EAI_AGAIN', 'ENOTFOUND']) {
    stage.state.failure = failure
    await stage.receiver.refresh()
    expect(stage.receiver.isLagging).toBe(true)
  }
  expect(stage.receiver.statuses().at(-1)).toMatchObject({ reason: 'too-many-instances' })
  expect(stage.state.events).toEqual(['receiver-behind too-many-instances'])
})

test.each(['ENOTFOUND', 'EAI_AGAIN'])(
  'a receiver that is closed during a lookup says nothing of %s',
  async (failure) => {
    const stage = await start(['10.0.0.1'])
    await stage.receiver.refresh()
    stage.state.failure = 'EAI_AGAIN'
    await stage.receiver.refresh()
    const { events, lookups } = { events: [...stage.state.events], lookups: stage.state.lookups }
    const answer = stage.hang()
    stage.state.failure = failure
    const refreshed = stage.receiver.refresh()
    await expect.poll(() => stage.state.lookups).toBeGreaterThan(lookups)
    await stage.receiver.close()
    answer()
    await refreshed
    expect(stage.state.events).toEqual(events)
  },
)

test('the end of a failure that was reported is reported, though the name resolved to nothing in between', async () => {
  const addresses: string[] = []
  const stage = await start(addresses)
  await stage.receiver.refresh()
  stage.state.failure = 'EAI_AGAIN'
  await stage.receiver.refresh()
  addresses.push('10.0.0.1')
  stage.state.failure = 'ENOTFOUND'
  await stage.receiver.refresh()
  stage.state.failure = undefined
  await stage.receiver.refresh()
  const { events } = stage.state
  expect(events.filter((event) => event.startsWith('receiver-behind'))).toHaveLength(1)
  expect(events.at(-1)).toBe('receiver-caught-up')
})

test('one process at a URL is looked up by nobody', async () => {
  const stage = await start(['10.0.0.1'], 'one')
  expect(stage.receiver.instances).toHaveLength(1)
  expect(stage.state.lookups).toBe(0)
})

describe('a resolver that hangs', () => {
  const startResolved = async (addresses: string[]) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
    const stage = await start(addresses)
    await stage.receiver.refresh()
    for (const address of addresses) stage.confirm(address)
    expect(stage.receiver.isLagging).toBe(false)
    return stage
  }

  /** Resolves in the time that the receiver may take, and no other time passes. */
  const late = async (ended: Promise<void>): Promise<void> => {
    await vi.advanceTimersByTimeAsync(2_000)
    await ended
  }

  test('is waited for once; until it answers, the receiver lags, and its last instances stay', async () => {
    const addresses = ['10.0.0.1']
    const { receiver, state, hang, confirm } = await startResolved(addresses)
    const answer = hang()
    await late(receiver.refresh())
    expect(receiver.statuses().at(-1)).toMatchObject({ isLagging: true, reason: 'lookup-late' })
    expect(receiver.instances.map(({ address }) => address)).toEqual(['10.0.0.1'])
    // No timer is run.
    for (let write = 0; write < 3; write += 1) await receiver.refresh()
    const { lookups } = state
    await vi.advanceTimersByTimeAsync(10_000)
    expect(state.lookups).toBe(lookups)
    expect(state.events).toEqual(['receiver-behind lookup-late'])
    addresses.push('10.0.0.2')
    answer()
    await expect.poll(() => state.joined).toEqual(['10.0.0.1', '10.0.0.2'])
    confirm('10.0.0.2')
    expect(receiver.isLagging).toBe(false)
    expect(state.events).toEqual(['receiver-behind lookup-late', 'receiver-caught-up'])
  })

  test('is seen without a write', async () => {
    const { receiver, hang } = await startResolved(['10.0.0.1'])
    hang()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(receiver.isLagging).toBe(true)
  })

  test.each(['late', 'failed'])(
    'and then answers that there is no such name, after a lookup that %s: its last instances are all',
    async (before) => {
      const { receiver, state, hang } = await startResolved(['10.0.0.1'])
      const answer = hang()
      const refreshed = receiver.refresh()
      if (before === 'late') await late(refreshed)
      else {
        state.failure = 'EAI_AGAIN'
        answer()
        await refreshed
      }
      expect(receiver.isLagging).toBe(true)
      state.failure = 'ENOTFOUND'
      answer()
      await vi.advanceTimersByTimeAsync(1_000)
      await expect.poll(() => receiver.isLagging).toBe(false)
      expect(receiver.instances.map(({ address }) => address)).toEqual(['10.0.0.1'])
      expect(state.events.at(-1)).toBe('receiver-caught-up')
    },
  )

  test('and then gives up knows no more: the next lookups are not waited for', async () => {
    const { receiver, state, hang } = await startResolved(['10.0.0.1'])
    const answer = hang()
    await late(receiver.refresh())
    state.failure = 'EAI_AGAIN'
    answer()
    await vi.advanceTimersByTimeAsync(0)
    const again = hang()
    await receiver.refresh()
    expect(receiver.isLagging).toBe(true)
    state.failure = undefined
    again()
    await expect.poll(() => receiver.isLagging).toBe(false)
  })
})

test('a resolver that fails, other than that there is no such name, leaves the instances unknown', async () => {
  const stage = await start(['10.0.0.1'])
  await expect.poll(() => stage.state.joined).toEqual(['10.0.0.1'])
  stage.confirm('10.0.0.1')
  expect(stage.receiver.isLagging).toBe(false)
  stage.state.failure = 'EAI_AGAIN'
  await stage.receiver.refresh()
  expect(stage.receiver.statuses().at(-1)).toMatchObject({ isLagging: true, reason: 'EAI_AGAIN' })
  expect(stage.state.closed).toEqual([])
})
