import { benchBatches } from './batch.ts'
import { benchDeployments } from './batch-deployments.ts'
import { generate } from './bundled-generator.ts'
import { checkCommandLine } from './command-line.ts'
import { benchDownstreamWrites } from './downstream-writes.ts'
import { benchLatency } from './latency.ts'
import { pacedGets } from './paced-gets.ts'
import { benchPairs } from './pairs.ts'
import { benchProfile } from './profile.ts'
import { servers } from './servers.ts'
import { benchServers } from './side-by-side.ts'
import { benchTable, printRow } from './table.ts'

const usage = `npm run bench                                    the whole run, some twenty minutes
BENCH_ROUNDS=1 BENCH_SECONDS=2 npm run bench     a short look
BENCH_PEERS=trellis,node-http npm run bench      some of the peers
BENCH_SCENARIOS=hit,pass npm run bench           some of the scenarios
npm run bench pairs http-proxy pass,miss         two servers in turns of a second: bench/pairs.ts
npm run bench latency nginx hit,pass 0.5         response times at a fixed rate: bench/latency.ts
npm run bench profile hit,miss                   where the processor time goes, beside bare Node: bench/profile.ts
npm run bench table 3                            the table of docs/evidence/performance.md, some ten minutes: bench/table.ts
npm run bench downstream-writes FOLDER/dist  a write that a receiver confirms, beside another build: bench/downstream-writes.ts
npm run bench batch                              batches: see bench/batch.ts
npm run bench batch-deployments                  the same in front of differently run WordPresses`

const modes = [
  ...['serve', 'generate', 'row', 'paced-gets'],
  ...['batch', 'pairs', 'table', 'latency', 'profile', 'downstream-writes', 'batch-deployments'],
]
const [mode, ...rest] = process.argv.slice(2)
// What is not a mode is read as an option or as a word too many.
if (mode !== undefined && (!modes.includes(mode) || rest.includes('--help'))) checkCommandLine(usage)
if (mode === 'serve') {
  // V8 writes a profile when the process ends by itself.
  process.once('SIGTERM', () => process.exit())
  await servers[rest[0] ?? '']?.(Number(rest[1]), rest[2] ?? '')
} else if (mode === 'generate') {
  const [url = '', seconds, connections, ...headers] = rest
  console.log(JSON.stringify(await generate(url, Number(seconds), Number(connections), headers)))
} else if (mode === 'batch') await benchBatches()
else if (mode === 'pairs')
  await benchPairs(rest[0], rest[1], rest[2] === undefined ? undefined : Number(rest[2]))
else if (mode === 'table')
  await benchTable(rest[0] === undefined ? undefined : Number(rest[0]), rest.slice(1))
else if (mode === 'row') await printRow(Number(rest[0]), Number(rest[1]))
else if (mode === 'latency') await benchLatency(rest[0], rest[1], ...rest.slice(2).map(Number))
else if (mode === 'profile') await benchProfile(rest[0], rest[1] === undefined ? undefined : Number(rest[1]))
else if (mode === 'downstream-writes')
  await benchDownstreamWrites(rest[0], rest[1] === undefined ? undefined : Number(rest[1]))
else if (mode === 'batch-deployments') await benchDeployments()
else if (mode === 'paced-gets') {
  console.log(JSON.stringify(await pacedGets(rest[0] ?? '', Number(rest[1]))))
} else await benchServers()
