import { readdirSync, readFileSync } from 'node:fs'

// USER_HZ: the unit of /proc/PID/stat is 1/100 s on every Linux that Node runs on.
const ticksPerSecond = 100

/** Seconds of processor time that a process and its descendants have used so far, user and system together. */
export function processorSeconds(root: number): number {
  const processes = readProcesses()
  let ticks = 0
  for (const pid of familyOf(root, processes)) ticks += processes.get(pid)?.ticks ?? 0
  return ticks / ticksPerSecond
}

/** Of the main thread alone. */
export function mainThreadSeconds(pid: number): number {
  return parseStat(readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8')).ticks / ticksPerSecond
}

/** Of the main thread (Linux, sched-stats: the first number of /proc/PID/schedstat), finer than ticks. */
export function mainThreadNanoseconds(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0])
}

/** Those that a process has started and that still run. */
export function childrenOf(parent: number): readonly number[] {
  return [...readProcesses()].filter(([, facts]) => facts.parent === parent).map(([pid]) => pid)
}

/** A process and all that descend from it. */
export function familyOf(
  root: number,
  processes: ReadonlyMap<number, { readonly parent: number }> = readProcesses(),
): ReadonlySet<number> {
  const family = new Set([root])
  // Parents are mostly listed before their children, but process ids wrap: repeat until nothing is added.
  for (let before = 0; before !== family.size; ) {
    before = family.size
    for (const [pid, { parent }] of processes) if (family.has(parent)) family.add(pid)
  }
  return family
}

type ProcessFacts = { readonly parent: number; readonly ticks: number }

function readProcesses(): Map<number, ProcessFacts> {
  const found = new Map<number, ProcessFacts>()
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry)
    if (!Number.isInteger(pid)) continue
    try {
      found.set(pid, parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8')))
    } catch {
      // Ended while we looked.
    }
  }
  return found
}

function parseStat(line: string): ProcessFacts {
  // proc(5): the command in parentheses may hold anything, the headers after the last one are numbers.
  const headers = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const at = (index: number): number => Number(headers[index] ?? 0)
  // ppid; utime and stime; cutime and cstime of children that have ended.
  return { parent: at(1), ticks: at(11) + at(12) + at(13) + at(14) }
}
