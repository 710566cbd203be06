import type { AttackRow } from './attack-row.ts'
import { batchRows } from './rows/batches.ts'
import { contentRows } from './rows/contents.ts'
import { documentRows } from './rows/documents.ts'
import { memoryRows } from './rows/memory.ts'
import { octetRows } from './rows/octets.ts'
import { operatorRows } from './rows/operators.ts'
import { partlySentRows } from './rows/partly-sent.ts'
import { peerRows } from './rows/peers.ts'
import { poisoningRows } from './rows/poisoning.ts'
import { refusalRows } from './rows/refusals.ts'
import { revokedRows } from './rows/revoked.ts'
import { spellingRows } from './rows/spellings.ts'
import { starvingRows } from './rows/starving.ts'
import { upstreamEndRows } from './rows/upstream-ends.ts'

/** Every attack, in the order in which they run. */
export const attacks: readonly AttackRow[] = [
  ...contentRows,
  ...memoryRows,
  ...octetRows,
  ...starvingRows,
  ...poisoningRows,
  ...spellingRows,
  ...refusalRows,
  ...batchRows,
  ...peerRows,
  ...operatorRows,
  ...upstreamEndRows,
  ...partlySentRows,
  ...documentRows,
  ...revokedRows,
]
