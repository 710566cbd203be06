import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { causeOf, createSender } from '../../../src/downstream/purge-sender.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

let origin: Origin

beforeAll(async () => {
  origin = await startOrigin()
})
afterAll(() => origin.close())

const senderTo = async (url: string, more: object = {}) => {
  const receivers = [{ type: 'webhook', url, secret: 's', ...more }]
  const blog = {
    contract: 'open',
    mount: '/',
    upstream: { targets: ['http://127.0.0.1:9'] },
    downstream: { receivers },
  }
  const checked = await checkConfig(JSON.stringify({ services: { blog } }), {})
  const config = checked.kind === 'faults' ? undefined : checked.config.services[0]?.downstream?.receivers[0]
  if (config === undefined) throw new Error(JSON.stringify(checked))
  return createSender(config, () => true, undefined, systemClock)
}

const purge = { method: 'POST', path: '/purge', headers: {}, body: '' } as const
const interim = (count: number): string => 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(count)

test('a purge target may send interim responses before its response', async () => {
  origin.script = (_, wire) => {
    wire.write(interim(900))
    wire.respond({ status: 200 })
  }
  const sender = await senderTo(origin.origin)
  expect(await sender.send(purge)).toBeUndefined()
  await sender.close()
})

test('one that sends more than an upstream may has not confirmed', async () => {
  origin.script = (_, wire) => {
    wire.write(interim(100_000))
    wire.respond({ status: 200 })
  }
  const sender = await senderTo(origin.origin)
  await expect(sender.send(purge)).rejects.toThrow('too-many-interim-responses')
  await sender.close()
})

test('a purge target that never responds has not confirmed within the timeout, whatever is collected meanwhile', async () => {
  origin.script = () => {}
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const sender = await senderTo(origin.origin, { timeout: '300ms' })
  const sent = sender.send(purge).then(
    () => 'confirmed',
    (error: unknown) => causeOf(error),
  )
  const collecting = setInterval(collect, 20)
  try {
    expect(await Promise.race([sent, sleep(20_000, 'waits for ever')])).toBe('TimeoutError')
  } finally {
    clearInterval(collecting)
    await sender.close()
  }
})
