import type { AttackRow } from './attack-row.ts'
import { starvingRows } from './rows/starving.ts'

/** Every attack, in the order in which they run. */
export const attacks: readonly AttackRow[] = [...starvingRows]
