import { isatty } from 'node:tty'
import closeWithGrace from 'close-with-grace'
import type { DrainStart } from '../cluster/worker-link.ts'
import { exitCodes, type StartedGateway, type TextOutput } from './cli-ports.ts'

const reasonOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)

/** Ctrl-C: its reader waits for the prompt, and no balancer for /readyz. */
const startOfDrain = (signal: string | undefined, isTerminal: boolean): DrainStart =>
  signal === 'SIGINT' && isTerminal ? 'at-once' : 'after-delay'

/**
 * From now on SIGTERM and SIGINT drain the gateway once and end the process with a code of the exit table; SIGHUP reloads.
 * An uncaught error drains it too: requests in flight may still finish, but the state of the process is uncertain.
 * Returns the function that POST /drain of the admin side calls. A SIGTERM that follows it joins the same drain, because
 * orchestrators send one next and it must not cut off the requests in flight.
 */
export const stopOnSignal = (
  gateway: StartedGateway,
  graceMs: number,
  stderr: TextOutput,
  notice: (start: DrainStart) => string,
  isTerminal = isatty(0),
): (() => void) => {
  const end = (line: string, code: number): never => {
    stderr.write(`trellis: ${line}\n`)
    process.exit(code)
  }
  const late = (delay: number): never =>
    end(`not closed after ${delay} ms, not waiting any longer`, exitCodes.forced.code)
  let draining: ReturnType<StartedGateway['drain']> | undefined
  const close = async (crashed: boolean, start: DrainStart): Promise<void> => {
    let outcome: 'finished' | 'cut' = 'cut'
    try {
      draining ??= gateway.drain(start)
      outcome = await draining
    } catch (error) {
      end(`error while closing: ${reasonOf(error)}`, exitCodes.crashed.code)
    }
    if (crashed) process.exit(exitCodes.crashed.code)
    if (outcome === 'cut') end('drain.timeout has passed, connections were cut', exitCodes.forced.code)
    process.exit(exitCodes.ok.code)
  }
  process.on('SIGHUP', () => {
    stderr.write('trellis: SIGHUP, reading the configuration again\n')
    void gateway.reload()
  })
  closeWithGrace(
    {
      delay: graceMs,
      logger: false,
      // SIGHUP is handled above; the event loop cannot become empty while the gateway listens.
      skip: ['SIGHUP', 'SIGUSR2', 'beforeExit'],
      onSecondSignal: (signal) =>
        end(`second signal (${signal}), not waiting any longer`, exitCodes.forced.code),
      onSecondError: (error) => end(`error while closing: ${reasonOf(error)}`, exitCodes.crashed.code),
      onTimeout: late,
    },
    async ({ err, signal }) => {
      const start = startOfDrain(signal, isTerminal)
      if (err !== undefined) {
        gateway.faulted(err)
        stderr.write(`trellis: unexpected error, closing: ${reasonOf(err)}\n`)
      } else stderr.write(`trellis: ${signal}, closing${notice(start)}\n`)
      await close(err !== undefined, start)
    },
  )
  return () => {
    if (draining !== undefined) return
    stderr.write(`trellis: POST /drain, closing${notice('after-delay')}\n`)
    setTimeout(late, graceMs, graceMs)
    void close(false, 'after-delay')
  }
}

/**
 * While a gateway starts, SIGTERM and SIGINT end the process at once and SIGHUP is remembered. Without handlers the first process of
 * a container ignores them, and SIGHUP ends any other one.
 * Returns the function to call when `stopOnSignal` has taken over: true if a SIGHUP arrived, so that a reload is due.
 */
export const handleSignalsWhileStarting = (stderr: TextOutput): (() => boolean) => {
  let isReloadDue = false
  const end = (signal: NodeJS.Signals): never => {
    stderr.write(`trellis: ${signal} before the start was complete\n`)
    process.exit(exitCodes.ok.code)
  }
  const remember = (): void => {
    isReloadDue = true
  }
  process.on('SIGTERM', end).on('SIGINT', end).on('SIGHUP', remember)
  return () => {
    process.off('SIGTERM', end).off('SIGINT', end).off('SIGHUP', remember)
    return isReloadDue
  }
}

const userSignals = {
  SIGUSR1: 'there is no log file to open again, since the log goes to standard output',
  SIGUSR2: 'it has no meaning here',
} as const

/**
 * Tools that rotate logs send SIGUSR1, at which Node opens its debugger to everyone on this machine; SIGUSR2 ends a process that
 * does not listen. `stderr` undefined: nothing is said.
 */
export const ignoreUserSignals = (stderr: TextOutput | undefined): void => {
  for (const [signal, text] of Object.entries(userSignals))
    process.on(signal, () => stderr?.write(`trellis: ${signal}, nothing is done: ${text}; SIGHUP reloads\n`))
}

/**
 * For a worker: its parent handles signals, and a terminal sends them to the whole process group. An uncaught error ends the
 * worker, and the parent starts another one.
 */
export const ignoreSignals = (gateway: Pick<StartedGateway, 'faulted'>): void => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  process.on('uncaughtException', (error) => {
    gateway.faulted(error)
    process.exit(exitCodes.crashed.code)
  })
}
