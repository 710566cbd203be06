import { expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { randomFrom } from '../support/random.ts'
import { describeWith } from '../support/requirements.ts'
import { type Arrangement, arrangements, startFuzzedGateways } from './write-fuzz/gateways.ts'
import { runLane, type Tally } from './write-fuzz/lane.ts'
import { startFuzzedUpstream } from './write-fuzz/upstream.ts'

// Writes that are cut, stalled, reset, drained, killed and reloaded in every state, with streams and bodies that are sent in part: no
// read is older than what a client of a write was told, or than what is settled. `WRITES=100000 npm run fuzz:writes` makes as many.

const count = Number(process.env['WRITES'] ?? times(16, 1_000))
const seed = Number(process.env['WRITE_SEED'] ?? times(1, Date.now() % 1_000_000))
const only = process.env['WRITE_ARRANGEMENT']
/** Ends a run earlier. */
const maxMs = Number(process.env['WRITE_SECONDS'] ?? 3_600) * 1_000

const run = async (arrangement: Arrangement, writes: number): Promise<Tally> => {
  const lanes = writes < 1_000 ? 3 : 16
  const upstreams = await Promise.all(
    Array.from({ length: lanes }, (_, lane) => startFuzzedUpstream(randomFrom(seed + 1_000 * lane))),
  )
  const gateways = await startFuzzedGateways(
    arrangement,
    upstreams.map(({ origin }) => origin),
  )
  const tally: Tally = { writes: 0, reads: 0, hits: 0, whole: 0, broken: 0, events: 0, older: [] }
  const until = performance.now() + maxMs
  const goesOn = (): boolean => tally.writes < writes && tally.older.length === 0 && performance.now() < until
  let happens: Promise<void> = Promise.resolve()
  try {
    await Promise.all(
      upstreams.map((upstream, number) =>
        runLane({
          number,
          upstream,
          tally,
          goesOn,
          clients: gateways.clients,
          random: randomFrom(seed + 7_919 * (number + 1)),
          hasEvents: number === 0,
          settled: gateways.settled,
          event: (kind) => {
            // One after the other.
            happens = happens.then(() => gateways[kind]())
            return happens
          },
        }),
      ),
    )
  } finally {
    await gateways.close()
    for (const upstream of upstreams) await upstream.close()
  }
  return tally
}

const isKept = async (arrangement: Arrangement): Promise<void> => {
  const tally = await run(arrangement, count)
  process.stderr.write(`${arrangement}: ${JSON.stringify({ ...tally, older: tally.older.length })}\n`)
  expect(tally.older.slice(0, 1)).toEqual([])
  // Not a test that passes because nothing is stored, or nothing breaks off.
  expect(tally.hits).toBeGreaterThan(tally.reads / 20)
  expect(tally.whole).toBeGreaterThan(tally.writes / 10)
  expect(tally.broken).toBeGreaterThan(tally.writes / 10)
}

const testMs = 60_000 + count * 200
const title = `%s, ${count} writes, seed ${seed}`
const wanted = arrangements.filter((name) => only === undefined || name === only)
const alone = wanted.filter((name) => name !== 'two instances')
const shared = wanted.filter((name) => name === 'two instances')

if (alone.length > 0) test.each(alone)(title, isKept, testMs)

if (shared.length > 0)
  describeWith('redis', 'on one Redis', () => {
    test.each(shared)(title, isKept, testMs)
  })
