import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { familyOf } from './processor-time.ts'

const run = promisify(execFile)

/** Keeps a process, and all that it has started or will start, on some processors (a list as taskset has it). */
export async function pin(root: number, processors: string): Promise<void> {
  for (const pid of familyOf(root)) {
    // A child may have ended in the meantime.
    await run('taskset', ['-acp', processors, String(pid)]).catch(() => {})
  }
}
