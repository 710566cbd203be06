import { cost, slowness } from './cost.ts'
import type { RunningProcess } from './processes.ts'

/**
 * Flags of Node for a process that reports its long turns of the event loop. The processor time of its main thread counts where it is
 * less than the time that passed: neither a machine that is busy with other programs nor another thread makes a turn long.
 */
export const reportsLongTurns: readonly string[] = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { readFileSync } from 'node:fs'
    const usedMs = () => Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]) / 1e6
    let [wall, used] = [performance.now(), usedMs()]
    setInterval(() => {
      const [now, usedNow] = [performance.now(), usedMs()]
      const ms = Math.min(now - wall, usedNow - used)
      if (ms > 20) process.stderr.write('long turn: ' + Math.round(ms) + ' ms\\n')
      wall = performance.now()
      used = usedMs()
    }, 5).unref()
  `)}`,
]

/** The turns longer than 20 ms that the process has reported so far. */
const turnsOf = (program: RunningProcess): readonly number[] =>
  [...program.output().matchAll(/long turn: (\d+) ms/g)].map(([, ms]) => Number(ms))

/** Longest turn of the process while `run` goes on, in milliseconds of a machine with nothing else to do; 0 when none was longer than 20. */
export const longestTurn = async (program: RunningProcess, run: () => Promise<unknown>): Promise<number> => {
  const before = turnsOf(program).length
  const slownessBefore = slowness()
  await run()
  return Math.max(0, ...turnsOf(program).slice(before)) / Math.max(slownessBefore, slowness())
}

/**
 * What a turn may take, in such milliseconds, that reads the content: `JSON.parse` is the one step that cannot be divided, and where it
 * takes long on this machine, so may the turn.
 */
export const maxTurnMs = (content: Buffer, usualMs: number): number => {
  const text = content.toString()
  const parse = (): void => {
    try {
      JSON.parse(text)
    } catch {
      // Until its first syntax error, as in the gateway.
    }
  }
  return Math.max(usualMs, 2 * cost(parse, 0, 3))
}
