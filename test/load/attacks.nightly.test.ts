import { afterAll, beforeAll, expect, test } from 'vitest'
import { outcomeText } from '../attack/report.ts'
import { runRow } from '../attack/run-row.ts'
import { type Neighbours, startNeighbours } from '../attack/scene.ts'
import { attacks } from '../attack/table.ts'

// Every row of `npm run attack`, for two seconds each in place of ten.

const seconds = Number(process.env['ATTACK_SECONDS'] ?? 2)

/** In so short a time the honest client sends some 30 requests, so that their p99 is the slowest; `npm run attack` allows 100. */
const slackMs = 800

let neighbours: Neighbours
beforeAll(async () => {
  neighbours = await startNeighbours()
})
afterAll(async () => {
  await neighbours.end()
})

test.each(attacks)('$name: $description', { timeout: 180_000 }, async (row) => {
  const outcome = await runRow(row, neighbours, { seconds, idleMs: 800, slackMs })
  expect(outcome.reasons, outcomeText(outcome)).toEqual([])
})
