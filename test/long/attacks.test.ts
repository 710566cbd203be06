import { afterAll, beforeAll, expect, test } from 'vitest'
import { outcomeText } from '../attack/report.ts'
import { runRow } from '../attack/run-row.ts'
import { type Neighbours, startNeighbours } from '../attack/scene.ts'
import { attacks } from '../attack/table.ts'
import { isAll } from '../support/breadth.ts'

// `npm run attack` in short: some rows with every change, every row with TRELLIS_TESTS=all.

/** `npm run attack` takes ten. */
const seconds = Number(process.env['ATTACK_SECONDS'] ?? 3)

/** Rows that are broken now: they run and are reported, and are asked for nothing. A row whose cause is mended leaves the list. */
const broken: ReadonlySet<string> = new Set([
  'lost-text',
  'lost-text-http2',
  'lost-text-workers',
  'large-contents',
  'declared-length',
  'slow-upload-unlisted',
  'slow-upload-sharing',
  'slow-upload-media',
  'unread-hits-tls',
  'long-variants',
  'long-variants-workers',
  'uploads-64',
  'uploads-1000',
  'uploads-1000-from-20',
  'media-64',
  'media-64-unlisted',
  'media-1000-from-20',
  'unread-64',
  'unread-64-tls',
  'unread-100-from-20',
  'streams-100',
  'streams-100-from-20',
  'slow-upstream-100',
  'slow-upstream-100-from-20',
  'rapid-reset',
  'rapid-reset-from-20',
  'uploads-200-workers',
  'slow-upstream-200-workers',
  'uploads-of-one-network',
  'variants',
  'variants-workers',
  'variants-addresses',
  'fields-sent-on',
  'credential-fields',
  'failing-leader',
  'batch-references',
  'batches-unread',
  'batches-unread-from-20',
  'batches-mixed',
  'forged-entries',
  'refusals-logged',
  'resets-logged',
  'admin-through-proxy',
  'traces-flagged',
  'traces-chosen',
])

let neighbours: Neighbours
beforeAll(async () => {
  neighbours = await startNeighbours()
})
afterAll(async () => {
  await neighbours.end()
})

const chosen = attacks.filter(({ isShort }) => isAll || isShort === true)

test.each(chosen)('$name: $description', { timeout: 180_000 }, async (row) => {
  const outcome = await runRow(row, neighbours, { seconds, idleMs: 800 })
  if (broken.has(row.name)) process.stderr.write(`known: ${outcomeText(outcome)}\n`)
  else expect(outcome.reasons.filter(() => outcome.verdict === 'BROKEN')).toEqual([])
})
