import { expect, onTestFinished, test } from 'vitest'
import { connectorFor } from '../../../src/cluster/redis/connector.ts'
import { listen } from '../../../src/cluster/redis/redis-ledger.ts'
import { pause } from '../../support/origin.ts'
import { connectedTo, maxReplyBytes } from './connected-to.ts'
import { startScriptedNode } from './scripted-node.ts'

const everyMs = 200
const timeoutMs = 2_000

const push = (message: string): string =>
  `*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$${message.length}\r\n${message}\r\n`
const subscribed = '*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n'

/** A listener at a node; `hears`: messages that it gets with the reply to each sign of life. */
const listening = async (responses: { subscribe: string; ping?: string }, hears: boolean) => {
  const acknowledged: string[] = []
  const troubles: unknown[] = []
  const node = await startScriptedNode(([name = '']) => {
    if (name === 'subscribe') return responses.subscribe
    return name === 'ping'
      ? (responses.ping ?? '*2\r\n$4\r\npong\r\n$0\r\n\r\n') + (hears ? push('[]') : '')
      : 'usual'
  })
  const calls = await connectedTo(node, { cluster: false, timeoutMs })
  const options = {
    channels: ['c'],
    connector: connectorFor('listens', { timeoutMs, maxReplyBytes }),
    everyMs,
    speak: () => Promise.resolve(),
    troubled: (error: unknown) => troubles.push(error),
  }
  const listener = listen(calls, options, (_, message) => acknowledged.push(message))
  onTestFinished(() => listener.close())
  const times = (): number => node.counts.get('subscribe') ?? 0
  await expect.poll(times).toBeGreaterThan(0)
  return { acknowledged, troubles, times, listener }
}

test('a listener that receives its own messages stays connected', async () => {
  const { acknowledged, times } = await listening({ subscribe: subscribed }, true)
  await expect.poll(() => acknowledged.length).toBeGreaterThan(3)
  expect(times()).toBe(1)
})

test('a server that answers but forwards no messages is left for another', async () => {
  const { times } = await listening({ subscribe: subscribed }, false)
  await expect.poll(times).toBeGreaterThan(1)
})

test('a silent server is left for another', async () => {
  const { times } = await listening({ subscribe: subscribed, ping: '' }, false)
  await expect.poll(times).toBeGreaterThan(1)
})

test('a server that refuses subscriptions is tried less and less often, and the reason is reported', async () => {
  const { troubles, times } = await listening({ subscribe: '-NOPERM no channel\r\n' }, false)
  await pause(1_000)
  expect(times()).toBeLessThan(8)
  expect(String(troubles[0])).toContain('NOPERM')
})

test('a closed listener does not connect again', async () => {
  const { times, listener } = await listening({ subscribe: subscribed }, true)
  listener.close()
  await pause(everyMs * 5)
  expect(times()).toBe(1)
})
