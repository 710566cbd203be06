// npm run fuzz:graphql: random writes by every door of a WordPress with WPGraphQL. After each, all responses that are still stored and
// a fifth of the others are compared with WordPress: with the companion, without it, and with WPGraphQL Smart Cache in the place of the gateway. WRITES=10000 in all for each, in
// runs of RUN=50 on a new site, QUERIES=30, SEED=1 of the first run; `-- companion` runs one of them. The results are kept: RESUME=1 goes
// on where a run was interrupted.
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkCommandLine } from '../../../bench/command-line.ts'
import { reasonWithoutArchives } from '../sites/archives.ts'
import { type CacheName, caches, type RandomResult, type RandomRun, runRandomly } from './run-randomly.ts'

checkCommandLine(
  `npm run fuzz:graphql -- [${caches.join(' | ')}] (WRITES, RUN, QUERIES, SEED, RESUME=1)`,
  {},
  [new RegExp(`^(?:${caches.join('|')})$`)],
)

const reason = reasonWithoutArchives()
if (reason !== undefined) throw new Error(reason)

const numberOf = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise)
const [writes, writesOfRun, queries, firstSeed] = [
  numberOf('WRITES', 10_000),
  numberOf('RUN', 50),
  numberOf('QUERIES', 30),
  numberOf('SEED', 1),
]

const results = join(dirname(fileURLToPath(import.meta.url)), '../../../bench/results/graphql.jsonl')
mkdirSync(dirname(results), { recursive: true })
if (process.env['RESUME'] !== '1') rmSync(results, { force: true })
const done: RandomResult[] = existsSync(results)
  ? readFileSync(results, 'utf8')
      .split('\n')
      .filter((text) => text !== '')
      .map((text) => JSON.parse(text) as RandomResult)
  : []

const tell = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const isOf =
  (run: RandomRun) =>
  (result: RandomResult): boolean =>
    result.cache === run.cache &&
    result.seed === run.seed &&
    result.writes === run.writes &&
    result.queries === run.queries

const resultOf = async (run: RandomRun): Promise<RandomResult> => {
  const known = done.find(isOf(run))
  if (known !== undefined) return known
  const result = await runRandomly(run, tell)
  appendFileSync(results, `${JSON.stringify(result)}\n`)
  return result
}

const row = (cache: CacheName, all: readonly RandomResult[]): string => {
  const sum = (of: (result: RandomResult) => number): number =>
    all.reduce((total, result) => total + of(result), 0)
  const unchanged = sum(({ kept }) => kept.unchanged)
  const left = unchanged === 0 ? '' : (sum(({ kept }) => kept.left) / unchanged).toFixed(2)
  const [made, compared, older] = [
    sum((result) => result.writes),
    sum((result) => result.compared),
    sum((result) => result.older),
  ]
  return `|${cache}|${made}|${compared}|${older}|${left}|`
}

const asked = process.argv[2]
let older = 0
for (const cache of caches.filter((name) => asked === undefined || name === asked)) {
  const all: RandomResult[] = []
  for (let nth = 0; nth * writesOfRun < writes; nth += 1) {
    const result = await resultOf({ cache, seed: firstSeed + nth, writes: writesOfRun, queries })
    all.push(result)
    for (const text of cache === 'Smart Cache' ? [] : result.firstOlder)
      tell(`OLDER, seed ${result.seed}: ${text}`)
    tell(row(cache, all))
    tell(result.byWrite.join('; '))
  }
  if (cache !== 'Smart Cache') older += all.reduce((total, result) => total + result.older, 0)
}
process.exitCode = older === 0 ? 0 : 1
