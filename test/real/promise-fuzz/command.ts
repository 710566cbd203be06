// npm run fuzz:promise: random writes of every kind, and what is stored compared with WordPress itself.
import { checkCommandLine } from '../../../bench/command-line.ts'
import { plantInCompanion } from '../companion/plant-in-companion.ts'
import { prepare } from '../companion/site.ts'
import { plantAll } from './plant-all.ts'
import { plantInWrite } from './plant-write.ts'
import { plantFault, plants } from './plants.ts'
import { runFuzz } from './run.ts'
import { type FuzzedSites, startFuzzedSites } from './site-under-fuzz.ts'

const flag = { type: 'boolean' } as const
checkCommandLine('npm run fuzz:promise -- [--plant-companion | --plant-write | --plant-all [--only TEXT]]', {
  ...{ 'plant-companion': flag, 'plant-write': flag, 'plant-all': flag },
  only: { type: 'string' },
})

const seed = Number(process.env['PROMISE_SEED'] ?? Date.now() % 1_000_000)
const writes = Number(
  process.env['PROMISE_WRITES'] ?? (process.argv.includes('--plant-all') ? 1_000 : 10_000),
)
/** Ends the run earlier than after all its writes. */
const minutes = Number(process.env['PROMISE_MINUTES'] ?? Number.POSITIVE_INFINITY)
const responsesPerWrite = Number(process.env['PROMISE_ANSWERS'] ?? 18)
const tell = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

if (process.argv.includes('--plant-companion')) {
  const only = process.env['PROMISE_PLANT'] ?? ''
  const focus = process.env['PROMISE_FOCUS'] ?? ''
  process.exit((await plantInCompanion({ only, focus, page: process.env['PROMISE_PAGE'], tell })) ? 0 : 1)
}

if (process.argv.includes('--plant-write')) {
  const [only, page] = [process.env['PROMISE_PLANT'], process.env['PROMISE_PAGE']]
  process.exit((await plantInWrite({ only, page, tell })) ? 0 : 1)
}

const planted = process.env['PROMISE_PLANT']
const plantsAll = process.argv.includes('--plant-all')
if (planted !== undefined && !plantsAll) {
  const named = plants.filter(({ name }) => planted.split(',').includes(name))
  if (named.length === 0) throw new Error(`no row of the table has an effect ${planted}`)
  named.forEach(plantFault)
}

const fuzz = async (sites: FuzzedSites): Promise<boolean> => {
  const began = performance.now()
  const focus = process.env['PROMISE_FOCUS']
  const { seen, stale } = await runFuzz(sites, {
    writes,
    seed,
    until: began + minutes * 60_000,
    responsesPerWrite,
    tell,
    ...(focus === undefined ? {} : { focus }),
    firstOnly: planted !== undefined,
    progress: ({ writes: sent, hits }) => {
      process.stderr.write(`${sent} writes, ${hits} stored answers compared\n`)
    },
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
  return stale.length === 0
}

// With the companion, which reports them, half of the writes bypass the gateway; COMPANION_SITE is object-cache or network.
const sites = await startFuzzedSites(
  prepare !== undefined || process.env['PROMISE_COMPANION'] === '1',
  prepare,
)
try {
  const only = process.env['PROMISE_PLANT'] ?? ''
  const aimed = process.argv.includes('--only') ? process.argv[process.argv.indexOf('--only') + 1] : undefined
  const isRight = plantsAll
    ? (await plantAll(sites, { writes, seed, only, aimed, page: process.env['PROMISE_PAGE'], tell })).every(
        ({ found, unobservable }) => found !== undefined || unobservable !== undefined,
      )
    : await fuzz(sites)
  process.exitCode = isRight ? 0 : 1
} finally {
  await sites.close()
}
