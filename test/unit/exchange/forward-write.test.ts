import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import type { Cache } from '../../../src/cache/cache.ts'
import { systemClock } from '../../../src/clock.ts'
import { GatewayError } from '../../../src/errors.ts'
import type { CacheDeps } from '../../../src/exchange/ports.ts'
import { forwardWrite } from '../../../src/exchange/write.ts'
import { createWritesInFlight } from '../../../src/exchange/writes-in-flight.ts'
import { unlimited } from '../../../src/http/bounds/byte-budget.ts'
import type { GatewayResponse } from '../../../src/http/message.ts'
import { ready, siteContract, siteService } from '../../exchange/exchange-of.ts'

/** A context that notes the steps of a write in `steps`; `spread` replaces the end of its announcement. */
const contextOf = (steps: string[], spread: () => Promise<void> = async () => {}): CacheDeps => ({
  cache: {
    shown: () => [],
    quarantineUntilReleased: () => () => undefined,
    invalidate: () => steps.push('invalidate'),
    quarantine: () => steps.push('quarantine'),
    purge: () => 0,
    written: () => undefined,
  } as unknown as Cache,
  writes: createWritesInFlight(),
  partitionOf: (credential) => credential,
  forwarding: { via: 'test' },
  writeRegistry: {
    begin: async () => {
      await Promise.resolve()
      steps.push('announce')
      return { kind: 'begun', write: 'w1' }
    },
    broadcast: async () => {
      steps.push('spread')
      await spread()
      return { entries: 0, unacknowledged: false }
    },
  },
  budget: () => unlimited,
  clock: systemClock,
  report: () => {},
})

const upload = () =>
  ready('/nope', { method: 'POST' }, siteService({ contract: siteContract({ unlisted: 'pass' }) }))

const streamed = (content: Readable): GatewayResponse => ({ status: 201, headers: [], content })

test('a write is announced, forwarded, invalidated here and elsewhere, and then acknowledged', async () => {
  const steps: string[] = []
  await forwardWrite(contextOf(steps), upload(), () => {
    steps.push('forward')
    return streamed(Readable.from(['x']))
  })
  steps.push('acknowledge')
  expect(steps).toEqual(['announce', 'forward', 'invalidate', 'spread', 'acknowledge'])
})

test('after a failure with an unknown outcome the stored responses are held back', async () => {
  const steps: string[] = []
  const failed = forwardWrite(contextOf(steps), upload(), ({ context: exchange }) => {
    exchange.record.writeProgress?.sent()
    throw new GatewayError('upstream_timeout')
  })
  await expect(failed).rejects.toMatchObject({ code: 'upstream_timeout' })
  expect(steps).toEqual(['announce', 'quarantine', 'invalidate', 'spread'])
})

test('a write that was never sent invalidates nothing, and ends its announcement', async () => {
  const steps: string[] = []
  const failed = forwardWrite(contextOf(steps), upload(), () => {
    throw new GatewayError('upstream_busy')
  })
  await expect(failed).rejects.toMatchObject({ code: 'upstream_busy' })
  expect(steps).toEqual(['announce', 'spread'])
})

test('the content of a response is released when its write cannot be acknowledged', async () => {
  const content = Readable.from(['x'])
  const refused = async (): Promise<never> => {
    throw new GatewayError('shared_store_unreachable')
  }
  await expect(forwardWrite(contextOf([], refused), upload(), () => streamed(content))).rejects.toMatchObject(
    { code: 'shared_store_unreachable' },
  )
  expect(content.destroyed).toBe(true)
})
