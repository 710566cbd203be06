import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** A child program of a test, leader of its own process group. */
export type RunningProcess = {
  readonly pid: number
  /** What it has written so far, both streams together; the lines of the last 256 KiB. */
  output(): string
  /** Its exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | string>
  /** Ends the whole group (SIGTERM, after `graceMs` SIGKILL) and returns how the leader ended. */
  stop(graceMs?: number): Promise<number | string>
}

const keptOutput = 256 * 1024

// The shell keeps its stdin open on a pipe from the test. When the test process dies without cleaning up, the pipe
// closes and the group is killed: no server outlives its test. A TERM to the group must reach the program exactly once
// (a second one means "at once" to many), so the shell itself only ignores it and goes on waiting.
const supervisor = `
exec 3<&0
trap : TERM INT USR1 USR2
"$@" </dev/null 3<&- & child=$!
( trap - TERM INT; trap '' USR1 USR2; cat <&3 >/dev/null; kill -s KILL -- -$$ ) & watcher=$!
wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
kill -KILL "$watcher" 2>/dev/null
exit "$code"
`

/** Starts a program that is ended with its test, whatever happens to the test. */
export function startProcess(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string> } = {},
): RunningProcess {
  const child = spawn('/bin/sh', ['-c', supervisor, 'sh', command, ...args], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const pid = child.pid
  if (pid === undefined) throw new Error(`cannot start ${command}`)
  let text = ''
  const keep = (chunk: Buffer): void => {
    text += chunk.toString()
    // Only whole lines are kept: the rest of a cut line could be read as another one.
    if (text.length > keptOutput) text = text.slice(text.indexOf('\n', text.length - keptOutput) + 1)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  child.stdin.on('error', () => {})
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  const stop = async (graceMs = 5000): Promise<number | string> => {
    signalGroup(pid, 'SIGTERM')
    await Promise.race([ended, sleep(graceMs, undefined, { ref: false })])
    // The rest of the group as well: the workers of php -S outlive the one that started them.
    signalGroup(pid, 'SIGKILL')
    return ended
  }
  return { pid, output: () => text, ended, stop }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // Already gone.
  }
}

/** The program itself (Linux): the supervisor's first child, in front of its watcher. */
export async function programPid({ pid }: Pick<RunningProcess, 'pid'>): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return Number(children.trim().split(' ')[0])
}

/** Waits until `probe` no longer throws; the error has the program's output if it ends or the timeout passes. */
export async function untilReady(
  program: RunningProcess,
  probe: () => Promise<unknown>,
  timeoutMs = 120_000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs
  let end: number | string | undefined
  void program.ended.then((how) => {
    end = how
  })
  for (;;) {
    try {
      await probe()
      return
    } catch (error) {
      if (end !== undefined) throw new Error(`ended with ${end} before it was ready:\n${program.output()}`)
      if (Date.now() > deadline) {
        throw new Error(`not ready in ${timeoutMs} ms (${String(error)}):\n${program.output()}`)
      }
      await sleep(50)
    }
  }
}
