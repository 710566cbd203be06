// npm run nines: stored responses of a real WordPress compared with WordPress itself after random writes, for MINUTES=60. What was
// compared is added to docs/evidence/reads-compared.json after each hundred writes, so that it can be interrupted; the next run goes on
// with the next seed. RESPONSES=60 are read after each write; half of the writes bypass the gateway and are reported by the companion.
import { checkCommandLine } from '../../../bench/command-line.ts'
import { currentCommit, nextSeedOf, readLedger, recordRun } from '../../support/reads-compared.ts'
import { runFuzz } from './run.ts'
import { startFuzzedSites } from './site-under-fuzz.ts'

checkCommandLine('npm run nines (MINUTES, WRITES: of each seed, RESPONSES: read after each write)')

const minutes = Number(process.env['MINUTES'] ?? 60)
const writesPerSeed = Number(process.env['WRITES'] ?? 100)
const responsesPerWrite = Number(process.env['RESPONSES'] ?? 60)
const tell = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const commit = currentCommit()
const until = performance.now() + minutes * 60_000
const sites = await startFuzzedSites(true)
let hasStale = false
try {
  while (performance.now() < until && !hasStale) {
    const seed = nextSeedOf(await readLedger(), 'wordpress', 1)
    const began = performance.now()
    const options = { writes: writesPerSeed, seed, until, responsesPerWrite, tell }
    const { seen, stale } = await runFuzz(sites, options)
    hasStale = stale.length > 0
    const seconds = Math.round((performance.now() - began) / 1000)
    const { reads, hits, writes } = seen
    // A miss is what WordPress has just said: only hits are compared.
    const compared = { reads: hits, hits, writes, faults: 0, older: stale.length }
    await recordRun({ run: 'wordpress', firstSeed: seed, commit }, { seeds: 1, ...compared, seconds })
    tell(`seed ${seed}: ${writes} writes, ${reads} reads, ${hits} hits compared, ${stale.length} older`)
  }
} finally {
  await sites.close()
}
process.exitCode = hasStale ? 1 : 0
