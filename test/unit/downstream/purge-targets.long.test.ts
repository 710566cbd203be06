import { afterEach, expect, test } from 'vitest'
import type { PurgeTarget } from '../../../src/downstream/purge-target.ts'
import { PurgeTargets } from '../../../src/downstream/purge-targets.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'

const opened: PurgeTargets[] = []
afterEach(async () => {
  for (const targets of opened.splice(0)) await targets.close()
})

const receiver = async (instances: string) => {
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
  const resolved = new Promise<void>((resolve) => {
    release = resolve
  })
  const state = { fails: false, lookups: 0, joined: [] as (string | undefined)[], closed: [] as string[] }
  const behind = new Set<string>()
  const targets = new PurgeTargets({
    config: await receiver(instances),
    service: 'blog',
    name: 'webhook',
    addressesOf: async () => {
      state.lookups += 1
      await resolved
      if (state.fails) throw new Error('ENOTFOUND')
      return [...addresses]
    },
    create: (address = '') => {
      behind.add(address)
      return {
        address,
        get isLagging() {
          return behind.has(address)
        },
        status: () => ({ address }),
        close: async () => void state.closed.push(address),
      } as unknown as PurgeTarget
    },
    joined: ({ address }) => state.joined.push(address),
    changed: () => undefined,
  })
  opened.push(targets)
  targets.start()
  expect(targets.isLagging).toBe(true)
  if (instances === 'dns')
    expect(targets.statuses()).toMatchObject([{ behind: true, reason: 'not-resolved' }])
  release()
  return { targets, state, confirm: (address: string) => behind.delete(address) }
}

const lookedUpAgain = async ({ state }: Awaited<ReturnType<typeof start>>): Promise<void> => {
  const before = state.lookups
  await expect.poll(() => state.lookups).toBeGreaterThan(before + 1)
}

test('is behind until its name is resolved, and until each instance has confirmed', async () => {
  const stage = await start(['10.0.0.1', '10.0.0.2'])
  await expect.poll(() => stage.state.joined).toEqual(['10.0.0.1', '10.0.0.2'])
  stage.confirm('10.0.0.1')
  expect(stage.targets.isLagging).toBe(true)
  stage.confirm('10.0.0.2')
  expect(stage.targets.isLagging).toBe(false)
})

test('an instance that joins is behind and told; one that leaves is closed', async () => {
  const addresses = ['10.0.0.1']
  const stage = await start(addresses)
  await expect.poll(() => stage.state.joined).toEqual(['10.0.0.1'])
  stage.confirm('10.0.0.1')
  addresses.push('10.0.0.2')
  await expect.poll(() => stage.state.joined).toEqual(['10.0.0.1', '10.0.0.2'])
  expect(stage.targets.isLagging).toBe(true)
  addresses.shift()
  await expect.poll(() => stage.state.closed).toEqual(['10.0.0.1'])
  expect(stage.targets.targets.map(({ address }) => address)).toEqual(['10.0.0.2'])
})

test('a name that resolves to nothing for a while loses no instance', async () => {
  const stage = await start(['10.0.0.1'])
  await expect.poll(() => stage.state.joined).toEqual(['10.0.0.1'])
  stage.state.fails = true
  await lookedUpAgain(stage)
  expect(stage.state.closed).toEqual([])
  expect(stage.targets.targets).toHaveLength(1)
})

test('more than 64 instances are not told: the receiver is behind, and says why', async () => {
  const stage = await start(Array.from({ length: 65 }, (_, at) => `10.0.0.${at}`))
  await expect.poll(() => stage.state.joined.length).toBe(64)
  for (let at = 0; at < 64; at += 1) stage.confirm(`10.0.0.${at}`)
  expect(stage.targets.isLagging).toBe(true)
  expect(stage.targets.statuses().at(-1)).toMatchObject({ reason: 'too-many-instances' })
})

test('one process at a URL is looked up by nobody', async () => {
  const stage = await start(['10.0.0.1'], 'one')
  expect(stage.targets.targets).toHaveLength(1)
  expect(stage.state.lookups).toBe(0)
})
