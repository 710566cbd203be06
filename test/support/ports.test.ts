import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from './ports.ts'

test('no port is given twice, and none that the system would give out by itself', async () => {
  const ports: number[] = []
  for (let turn = 0; turn < 200; turn += 1) ports.push(await freePort())
  expect(new Set(ports).size).toBe(ports.length)
  expect(Math.max(...ports)).toBeLessThan(32_768)
})

test('a port in use is not given', async () => {
  const taken = (await freePort()) + 1
  const server = createServer().listen(taken, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  expect(await freePort()).not.toBe(taken)
})
