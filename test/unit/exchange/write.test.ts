import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import type { Cache } from '../../../src/cache/cache.ts'
import { systemClock } from '../../../src/clock.ts'
import { GatewayError } from '../../../src/errors.ts'
import { usualWriteSteps, type WriteStep, writeSteps } from '../../../src/exchange/events.ts'
import type { CacheDeps } from '../../../src/exchange/ports.ts'
import { write } from '../../../src/exchange/write.ts'
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
    someTargets: () => [],
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
  await write(contextOf(steps), upload(), () => {
    steps.push('forward')
    return streamed(Readable.from(['x']))
  })
  steps.push('acknowledge')
  expect(steps).toEqual(['announce', 'forward', 'invalidate', 'spread', 'acknowledge'])
})

test('after a failure with an unknown outcome the stored responses are held back', async () => {
  const steps: string[] = []
  const failed = write(contextOf(steps), upload(), ({ context: exchange }) => {
    exchange.record.writeProgress?.sent()
    throw new GatewayError('upstream_timeout')
  })
  await expect(failed).rejects.toMatchObject({ code: 'upstream_timeout' })
  expect(steps).toEqual(['announce', 'quarantine', 'invalidate', 'spread'])
})

test('a write that was never sent invalidates nothing, and ends its announcement', async () => {
  const steps: string[] = []
  const failed = write(contextOf(steps), upload(), () => {
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
  await expect(write(contextOf([], refused), upload(), () => streamed(content))).rejects.toMatchObject({
    code: 'shared_store_unreachable',
  })
  expect(content.destroyed).toBe(true)
})

/** The steps of one write; `respond` gives the response of the upstream. */
const stepsOf = async (respond: () => GatewayResponse, context = upload()): Promise<readonly WriteStep[]> => {
  const steps: WriteStep[] = []
  context.record.trace = {
    traceId: '',
    spanId: '',
    sampled: true,
    write: (step: WriteStep) => steps.push(step),
  } as never
  const response = await write(contextOf([]), context, respond).catch(() => undefined)
  if (response?.content instanceof Readable) for await (const _ of response.content);
  return steps
}

test('a write is settled by its end, and by none of its pieces', async () => {
  const settled: (string | undefined)[] = []
  const writeRegistry: CacheDeps['writeRegistry'] = {
    begin: async () => ({ kind: 'begun', write: 'w1' }),
    broadcast: async (_, name) => {
      settled.push(name)
    },
  }
  const response = await write({ ...contextOf([]), writeRegistry }, upload(), () =>
    streamed(Readable.from(['x'])),
  )
  if (response.content instanceof Readable) for await (const _ of response.content);
  expect(settled.length).toBeGreaterThan(1)
  expect(settled.filter((name) => name !== undefined)).toEqual(['w1'])
  expect(settled.at(-1)).toBe('w1')
})

test('the steps of a write are those that explain shows', async () => {
  expect(await stepsOf(() => streamed(Readable.from(['x'])))).toEqual(usualWriteSteps.streamed)
  const item = { ...upload(), origin: 'batch' as const }
  expect(await stepsOf(() => ({ status: 201, headers: [], content: undefined }), item)).toEqual(
    usualWriteSteps.whole,
  )
})

test('the steps of a write that gets no response end with its break-off', async () => {
  const failed = (): never => {
    throw new GatewayError('upstream_timeout')
  }
  expect(await stepsOf(failed)).toEqual(['judge', 'register', 'forward', 'break-off'])
})

test('docs/request-path.md has a row for each step, in the same order, and no other', async () => {
  const page = await readFile('docs/request-path.md', 'utf8')
  const [, section = ''] = page.split('## The steps of a write\n')
  const [table = ''] = section.split('\n## ')
  const named = [...table.matchAll(/^\|`([a-z-]+)`\|/gm)].map(([, name]) => name)
  expect(named).toEqual(writeSteps)
})
