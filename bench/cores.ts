import { spawnSync } from 'node:child_process'
import { cpus } from 'node:os'

/** Makes a command run on one core. */
export type Pin = (command: readonly string[]) => readonly string[]

/** Server on the first core, generator and origin on the second; unpinned where there is one core or no taskset. */
export function pins(): [Pin, Pin] {
  const canPin = cpus().length > 1 && spawnSync('sh', ['-c', 'taskset -c 0 true']).status === 0
  if (!canPin) console.log('no taskset or one core only: server and generator share what there is')
  const to = (core: number): Pin =>
    canPin ? (command) => ['taskset', '-c', String(core), ...command] : (c) => c
  return [to(0), to(1)]
}
