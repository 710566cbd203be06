import { afterEach, expect, test, vi } from 'vitest'
import type { Invalidation } from '../../../../src/cache/invalidation.ts'
import { systemClock } from '../../../../src/clock.ts'
import type { Coherence } from '../../../../src/cluster/coherence.ts'
import type { DownstreamEvent } from '../../../../src/downstream/events.ts'
import type { Service } from '../../../../src/exchange/service.ts'
import { checkConfig } from '../../../../src/gateway/load-config.ts'
import { Broadcast } from '../../../../src/gateway/parts/broadcast.ts'
import { connectDownstreams, type Downstreams } from '../../../../src/gateway/parts/downstreams.ts'
import type { Contract } from '../../../../src/service/contract.ts'
import { type Origin, startOrigin } from '../../../support/origin.ts'

const opened: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
  vi.useRealTimers()
})

/** Two turns, one of which may be under way. */
const someSecondsLater = (): void => void vi.advanceTimersByTime(10_000)

const dropped: Invalidation = { kind: 'tag', tag: 'blog/item/posts/7', mode: 'hard' }

type Stage = {
  readonly downstreams: Downstreams
  readonly broadcast: Broadcast
  readonly receiver: Origin
  readonly events: string[]
  readonly warnings: string[]
  /** As a reload that is refused. */
  build(name: string): void
  /** As the one after it, with the service of the start. */
  reload(): void
}

/** One gateway of several: `spread` stands for the others. */
const start = async (
  spread: Coherence['broadcast'],
  failures = 0,
  downstreamSettings: Readonly<Record<string, string>> = {},
): Promise<Stage> => {
  const events: string[] = []
  const warnings: string[] = []
  const receiver = await startOrigin((_, wire) => {
    const fails = receiver.received.length <= failures
    if (!fails) events.push('purged')
    wire.respond({ status: fails ? 500 : 200 })
  })
  const file = {
    services: {
      blog: {
        contract: 'open',
        mount: '/',
        upstream: { targets: ['http://127.0.0.1:9'] },
        downstream: {
          settle: '1ms',
          ...downstreamSettings,
          receivers: [{ type: 'varnish', url: receiver.origin }],
        },
      },
    },
  }
  const checked = await checkConfig(JSON.stringify(file), {})
  if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
  const [config] = checked.config.services
  if (config === undefined) throw new Error('no service')
  const coherence = {
    begin: async () => ({ kind: 'begun', write: 'a#1' }) as const,
    broadcast: async (invalidations: readonly Invalidation[], write?: string) => {
      const result = await spread(invalidations, write)
      events.push('spread')
      return result
    },
  } as unknown as Coherence
  const downstreams = connectDownstreams({
    clock: systemClock,
    metrics: {
      observe: {
        downstream: ({ kind }: DownstreamEvent) => kind === 'receiver-given-up' && events.push(kind),
      },
    } as unknown as Parameters<typeof connectDownstreams>[0]['metrics'],
    logger: {
      info: () => undefined,
      warn: ({ reason }: { readonly reason?: string }, message: string) =>
        warnings.push([message, ...(reason === undefined ? [] : [reason])].join(' ')),
    } as unknown as Parameters<typeof connectDownstreams>[0]['logger'],
  })
  const contract = { tagger: { everything: undefined } } as unknown as Contract
  const downstream = downstreams.of(config, contract)
  const reload = (): void => downstreams.use([{ responses: { downstream } } as unknown as Service])
  reload()
  opened.push(receiver, { close: downstreams.close })
  await expect.poll(() => downstream?.mayStore()).toBe(true)
  expect(downstreams.of(config, contract)).toBe(downstream)
  events.length = 0
  return {
    downstreams,
    broadcast: new Broadcast(coherence, downstreams),
    receiver,
    events,
    warnings,
    reload,
    build: (name) => void downstreams.of({ ...config, name }, contract),
  }
}

test('receivers are purged when all other gateways have dropped what a write changed', async () => {
  let others = (): void => {}
  const { broadcast, events } = await start(
    () =>
      new Promise((resolve) => {
        others = () => resolve({ entries: 3, unacknowledged: false })
      }),
  )
  const spread = broadcast.send([dropped])
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(events).toEqual([])
  others()
  expect(await spread).toEqual({ entries: 3, unacknowledged: false, unconfirmed: false })
  expect(events).toEqual(['spread', 'purged'])
})

test('a start purges everything twice: responses of an earlier configuration may be on their way', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { receiver } = await start(async () => ({ entries: 0, unacknowledged: false }))
  someSecondsLater()
  await receiver.until(() => receiver.received.length === 2)
  const [first, second] = receiver.received.map(({ headers }) => headers['xkey-purge'])
  expect(first).toMatch(/^[0-9a-f]{12}$/)
  expect(second).toBe(first)
})

test('what other gateways have changed is purged some seconds later: they may have ended before', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { downstreams, receiver } = await start(async () => ({ entries: 0, unacknowledged: false }))
  someSecondsLater()
  await receiver.until(() => receiver.received.length === 2)
  downstreams.changedElsewhere([dropped])
  someSecondsLater()
  await receiver.until(() => receiver.received.length === 3)
  expect(receiver.received[2]?.headers['xkey-purge']?.split(' ')).toHaveLength(2)
})

test('receivers of a service that a reload removes are asked until everything is confirmed, and no longer', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { downstreams, receiver } = await start(async () => ({ entries: 0, unacknowledged: false }))
  const { script } = receiver
  receiver.script = (_, wire) => wire.respond({ status: 500 })
  const before = receiver.received.length
  downstreams.use([])
  await receiver.until(() => receiver.received.length > before + 1)
  someSecondsLater()
  someSecondsLater()
  expect(vi.getTimerCount()).toBeGreaterThan(0)
  receiver.script = script
  await expect
    .poll(() => {
      someSecondsLater()
      return vi.getTimerCount()
    })
    .toBe(0)
})

test('one that never confirms is given up when it may show nothing any longer that it has stored, and is sent no more', async () => {
  const { downstreams, receiver, events, warnings } = await start(
    async () => ({ entries: 0, unacknowledged: false }),
    0,
    { lifetime: '1s' },
  )
  receiver.script = (_, wire) => wire.respond({ status: 500 })
  downstreams.use([])
  await expect.poll(() => events, { timeout: 20_000 }).toEqual(['receiver-given-up'])
  expect(warnings).toEqual(['receiver-behind status-500', 'receiver-given-up'])
  await expect.poll(() => receiver.open).toBe(0)
  const { length } = receiver.received
  downstreams.changedElsewhere([dropped])
  await downstreams.close()
  expect(receiver.received).toHaveLength(length)
})

test('receivers of a configuration that was refused are sent nothing', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { build, reload, receiver } = await start(async () => ({ entries: 0, unacknowledged: false }))
  const [timers, purges] = [vi.getTimerCount(), receiver.received.length]
  build('shop')
  expect(vi.getTimerCount()).toBeGreaterThan(timers)
  reload()
  await expect.poll(() => vi.getTimerCount()).toBe(timers)
  expect(receiver.received).toHaveLength(purges)
})

test('what reaches no service with receivers is sent to none', async () => {
  const { broadcast, events } = await start(async () => ({ entries: 0, unacknowledged: false }))
  await broadcast.send([{ kind: 'tag', tag: 'shop/item/posts/7', mode: 'hard' }])
  await broadcast.send([{ kind: 'documents', service: 'blog', collection: '' }])
  expect(events).toEqual(['spread', 'spread'])
})

test('the log names a receiver from the first contact that fails', async () => {
  const settled: Coherence['broadcast'] = async () => ({ entries: 0, unacknowledged: false })
  expect((await start(settled)).warnings).toEqual([])
  expect((await start(settled, 2)).warnings).toEqual(['receiver-behind status-500'])
})
