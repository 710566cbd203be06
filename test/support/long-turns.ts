import type { RunningProcess } from './processes.ts'

/**
 * Flags of Node for a process that reports its long turns of the event loop. The processor time of the process counts where it is
 * less than the time that passed: a machine that is busy with other programs makes no turn long.
 */
export const reportsLongTurns: readonly string[] = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    let [wall, used] = [performance.now(), process.cpuUsage()]
    setInterval(() => {
      const now = performance.now()
      const { user, system } = process.cpuUsage(used)
      const ms = Math.min(now - wall, (user + system) / 1000)
      if (ms > 20) process.stderr.write('long turn: ' + Math.round(ms) + ' ms\\n')
      wall = performance.now()
      used = process.cpuUsage()
    }, 5).unref()
  `)}`,
]

/** The turns longer than 20 ms that the process has reported so far. */
const turnsOf = (program: RunningProcess): readonly number[] =>
  [...program.output().matchAll(/long turn: (\d+) ms/g)].map(([, ms]) => Number(ms))

/** Longest turn of the process while `run` goes on, in milliseconds; 0 when none was longer than 20. */
export const longestTurn = async (program: RunningProcess, run: () => Promise<unknown>): Promise<number> => {
  const before = turnsOf(program).length
  await run()
  return Math.max(0, ...turnsOf(program).slice(before))
}
