import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import type { HttpServer } from '../support/http-server.ts'
import { attackedServices, memoryAttacks, startAttackedUpstream } from './attacks/memory.ts'
import { scrape, sumOf } from './soak/readings.ts'

// A gateway that may store 64 MiB stays under 264 MiB where clients try to make it hold more, and under 400 MiB where large contents come and go as fast as they can.

const seconds = Number(process.env['SECONDS'] ?? times(3, 15))
const mebibyte = 1024 * 1024
const usualMebibytes = 264

let upstream: HttpServer
let gateway: GatewayProcess

beforeAll(async () => {
  upstream = await startAttackedUpstream()
})
afterAll(async () => {
  await upstream.close()
})
beforeEach(async () => {
  gateway = await startGatewayProcess({
    cache: { maxBytes: '64MiB' },
    services: attackedServices(upstream.origin),
  })
})
afterEach(async () => {
  await gateway.stop()
})

/** Most that the process had at any moment, as the system noted it; the program may have been started by a shell. */
const maxResidentOf = async (pid: number): Promise<number> => {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim()
  const status = await readFile(`/proc/${children === '' ? pid : children.split(' ')[0]}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
}

// What V8 has not collected yet is resident too: beside other programs it comes to that late.
test.each(memoryAttacks)(
  '$name',
  { timeout: (seconds + 60) * 1000, retry: 2 },
  async ({ name, run, maxMebibytes = usualMebibytes }) => {
    const before = await maxResidentOf(gateway.program.pid)
    let max = 0
    let under = true
    const ends = performance.now() + seconds * 1000
    const goesOn = (): boolean => under && performance.now() < ends
    const watch = async (): Promise<void> => {
      while (goesOn()) {
        max = await maxResidentOf(gateway.program.pid)
        under = max < 3_000 * mebibyte
        await sleep(20)
      }
    }
    await Promise.all([run({ origin: gateway.origin, goesOn }), watch()])
    const samples = await scrape(gateway.adminOrigin)
    const inMebibytes = (bytes: number): number => Math.round(bytes / mebibyte)
    // biome-ignore lint/suspicious/noConsole: the figures are what a longer run is made for.
    console.info(
      `${name}: resident ${inMebibytes(before)} to ${inMebibytes(max)} MiB, stored ${inMebibytes(sumOf(samples, 'trellis_cache_bytes'))} MiB`,
    )
    expect(max).toBeLessThan(maxMebibytes * mebibyte)
    await expect.poll(async () => sumOf(await scrape(gateway.adminOrigin), 'trellis_buffered_bytes')).toBe(0)
  },
)
