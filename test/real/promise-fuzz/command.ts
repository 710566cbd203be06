// npm run fuzz:promise: random writes through every door, and what is stored compared with WordPress itself.
import { plantFault, plants } from './plants.ts'
import { runFuzz } from './run.ts'
import { startFuzzedSites } from './site-under-fuzz.ts'

const seed = Number(process.env['PROMISE_SEED'] ?? Date.now() % 1_000_000)
const writes = Number(process.env['PROMISE_WRITES'] ?? 10_000)
const answersPerWrite = Number(process.env['PROMISE_ANSWERS'] ?? 18)
const tell = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const planted = process.env['PROMISE_PLANT']
for (const plant of plants.filter(({ name }) => planted?.split(',').includes(name))) plantFault(plant)
const began = performance.now()
const sites = await startFuzzedSites()
try {
  const focus = process.env['PROMISE_FOCUS']
  const { seen, stale } = await runFuzz(sites, {
    writes,
    seed,
    answersPerWrite,
    tell,
    ...(focus === undefined ? {} : { focus }),
  })
  if (process.env['TRELLIS_VERBOSE'] !== undefined) {
    for (const [kind, statuses] of seen.statuses) {
      tell(`${kind}: ${[...statuses].map(([status, times]) => `${status} ×${times}`).join(', ')}`)
    }
    tell(`differ when new, too: ${[...seen.otherwise].join(' ')}`)
  }
  const seconds = Math.round((performance.now() - began) / 1000)
  tell(
    `seed ${seed}: ${seen.writes} writes (${seen.refused} refused), ${seen.reads} answers read, ${seen.hits} of them stored ones, ${stale.length} stale; ${seconds} s`,
  )
  process.exitCode = stale.length === 0 ? 0 : 1
} finally {
  await sites.close()
}
