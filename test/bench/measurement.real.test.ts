import { spawn } from 'node:child_process'
import { expect, test } from 'vitest'
import { parseH2load, parseWrk } from '../../bench/generator.ts'
import { processorSeconds } from '../../bench/processor-time.ts'
import { summarise } from '../../bench/report.ts'

test("wrk's report is read with its units", () => {
  const report = `Running 2s test @ http://127.0.0.1:1/
  Latency Distribution
     50%  790.00us
     75%    1.20ms
     90%    2.00ms
     99%   26.02ms
  45234 requests in 2.01s, 104.40MB read
Requests/sec:  22552.11
`
  expect(parseWrk(report)).toEqual({ requests: 45234, seconds: 2.01, failures: 0, p50Ms: 0.79, p99Ms: 26.02 })
  const failing = `${report}  Socket errors: connect 1, read 2, write 3, timeout 4\n  Non-2xx or 3xx responses: 5\n`
  expect(parseWrk(failing).failures).toBe(15)
})

test("h2load's report is read, with what failed", () => {
  const report = `finished in 1.00s, 8.00 req/s, 1KB/s
requests: 40 total, 41 started, 40 done, 37 succeeded, 3 failed, 1 errored, 0 timeout
status codes: 30 2xx, 4 3xx, 2 4xx, 1 5xx
`
  expect(parseH2load(report, 1)).toMatchObject({ requests: 40, seconds: 1, failures: 6 })
})

test('processor time is that of the whole process tree', async () => {
  const busy = 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'
  const child = spawn('sh', ['-c', `sh -c '${busy}; sleep 5' & wait`], { detached: true })
  const pid = child.pid ?? 0
  const end = Date.now() + 10_000
  while (processorSeconds(pid) < 0.05 && Date.now() < end)
    await new Promise((resolve) => setTimeout(resolve, 50))
  expect(processorSeconds(pid)).toBeGreaterThanOrEqual(0.05)
  process.kill(-pid, 'SIGKILL')
})

test('a summary holds medians, the spread and the ratio to the yardstick of its scenario', () => {
  const round = (peer: string, perProcessorSecond: number) => ({
    ...{
      peer,
      scenario: 'hit' as const,
      requests: 10,
      perProcessorSecond,
      perSecond: 10,
      p50Ms: 1,
      p99Ms: 2,
    },
  })
  const rounds = [90, 100, 200].map((value) => round('ours', value))
  const floors = [180, 200, 210, 220].map((value) => round('floor', value))
  const [ours, floor] = summarise([...rounds, ...floors], { hit: 'floor' })
  expect(ours).toMatchObject({ median: 100, spread: 0.55, rounds: 3 })
  expect(floor).toMatchObject({ median: 205, ratio: 1 })
  expect(ours?.ratio).toBeCloseTo(100 / 205)
  expect(summarise(rounds, { hit: 'floor' })[0]?.ratio).toBeUndefined()
})
