import { afterAll, beforeAll, expect, test } from 'vitest'
import { outcomeText } from '../attack/report.ts'
import { runRow } from '../attack/run-row.ts'
import { type Neighbours, startNeighbours } from '../attack/scene.ts'
import { attacks } from '../attack/table.ts'
import { isAll, times } from '../support/breadth.ts'

// `npm run attack` in short: one row of most kinds with every change, every row with TRELLIS_TESTS=all.

const short = [
  ...['slow-upload-sharing', 'responses-for-one', 'forged-tokens', 'batch-contents', 'partly-sent-writes'],
]

/** `npm run attack` takes ten. */
const seconds = Number(process.env['ATTACK_SECONDS'] ?? times(1, 2))

/** In so short a time the honest client sends some 30 requests, so that their p99 is the slowest; `npm run attack` allows 100. */
const slackMs = 800

let neighbours: Neighbours
beforeAll(async () => {
  neighbours = await startNeighbours()
})
afterAll(async () => {
  await neighbours.end()
})

const chosen = attacks.filter(({ name }) => isAll || short.includes(name))

test('each row of the short version is a row', () => {
  expect(attacks.map(({ name }) => name)).toEqual(expect.arrayContaining(short))
})

test.each(chosen)('$name: $description', { timeout: 180_000 }, async (row) => {
  const outcome = await runRow(row, neighbours, { seconds, idleMs: 800, slackMs })
  expect(outcome.reasons, outcomeText(outcome)).toEqual([])
})
