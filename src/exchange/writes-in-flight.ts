import type { WritesInFlight } from './ports.ts'
import { createConcurrentWrites } from './write/concurrent-writes.ts'
import { createOpenWrites } from './write/open-writes.ts'
import { createTasksByServices } from './write/scheduled-tasks.ts'

/** One for each cache: it outlives the configurations under which writes begin. */
export const createWritesInFlight = (): WritesInFlight => ({
  concurrent: createConcurrentWrites(),
  open: createOpenWrites(),
  tasks: createTasksByServices(),
})
