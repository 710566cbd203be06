import { checkCommandLine, words } from './command-line.ts'
import { runTrace, type TraceResult } from './trace-run.ts'

// npm run bench:trace                          20,000 requests, 20 a second of a virtual clock
// npm run bench:trace -- 2000 7                this many requests, with this seed
checkCommandLine('npm run bench:trace -- [REQUESTS [SEED]]', {}, [words.count, words.count])
const [operations = 20_000, seed = 1] = process.argv.slice(2).map(Number)

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`

const row = ({ name, reads, hits, upstreamReads, stale }: TraceResult): readonly string[] => [
  name,
  percent(hits / reads),
  String(upstreamReads),
  `${stale} (${percent(stale / reads)})`,
]

const results = await runTrace({ seed, operations, betweenMs: 50 })
const table = [['cache', 'hit ratio', 'upstream reads', 'stale reads'], ...results.map(row)]
const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((cells) => (cells[column] ?? '').length)))
console.log(`${results[0]?.reads} reads and ${operations - (results[0]?.reads ?? 0)} writes, seed ${seed}`)
for (const cells of table) console.log(cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
