import { availableParallelism } from 'node:os'
import type { Config } from '../config/config.ts'

/** How many processes a configuration asks for. */
export const workersOf = ({ workers }: Pick<Config, 'workers'>): number =>
  workers === 0 ? availableParallelism() : workers
