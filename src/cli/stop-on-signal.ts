import closeWithGrace from 'close-with-grace'
import type { RunningGateway, TextOutput } from './cli-ports.ts'
import { exitCodes } from './exit-codes.ts'

const reasonOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)

/**
 * From now on SIGTERM and SIGINT close the gateway once, and the process ends with a row of the exit table; SIGHUP reloads.
 * An uncaught error closes it too: what is in flight may still be finished, but nothing can be trusted for long.
 * Returns what does the same for an operator who asks for it by the admin side. Asked again, or told by a signal as well, it is one
 * and the same closing: whoever runs the process sends SIGTERM next, and that must not cut off what is being finished.
 */
export const stopOnSignal = (gateway: RunningGateway, graceMs: number, stderr: TextOutput): (() => void) => {
  const end = (line: string, code: number): never => {
    stderr.write(`trellis: ${line}\n`)
    process.exit(code)
  }
  const late = (delay: number): never =>
    end(`not closed after ${delay} ms, not waiting any longer`, exitCodes.forced.code)
  let draining: ReturnType<RunningGateway['drain']> | undefined
  const close = async (crashed: boolean): Promise<void> => {
    let outcome: 'finished' | 'cut' = 'cut'
    try {
      draining ??= gateway.drain()
      outcome = await draining
    } catch (error) {
      end(`error while closing: ${reasonOf(error)}`, exitCodes.crashed.code)
    }
    if (crashed) process.exit(exitCodes.crashed.code)
    if (outcome === 'cut') end('drain.timeout is over, connections were cut', exitCodes.forced.code)
    process.exit(exitCodes.ok.code)
  }
  process.on('SIGHUP', () => {
    stderr.write('trellis: SIGHUP, reading the configuration anew\n')
    void gateway.reload()
  })
  closeWithGrace(
    {
      delay: graceMs,
      logger: false,
      // SIGHUP is answered above; an empty event loop cannot happen while the gateway listens.
      skip: ['SIGHUP', 'SIGUSR2', 'beforeExit'],
      onSecondSignal: (signal) =>
        end(`second signal (${signal}), not waiting any longer`, exitCodes.forced.code),
      onSecondError: (error) => end(`error while closing: ${reasonOf(error)}`, exitCodes.crashed.code),
      onTimeout: late,
    },
    async ({ err, signal }) => {
      if (err !== undefined) {
        gateway.faulted(err)
        stderr.write(`trellis: unexpected error, closing: ${reasonOf(err)}\n`)
      } else stderr.write(`trellis: ${signal}, closing\n`)
      await close(err !== undefined)
    },
  )
  return () => {
    if (draining !== undefined) return
    stderr.write('trellis: asked to drain, closing\n')
    setTimeout(late, graceMs, graceMs)
    void close(false)
  }
}

/**
 * While a gateway starts: SIGTERM and SIGINT end the process at once, since there is nothing to finish; SIGHUP is kept until it runs. What
 * nobody listens for is lost on the first process of a container, and SIGHUP would end any other one.
 * Returns what is to be called once `stopOnSignal` listens: it says whether there is something to reload.
 */
export const hearWhileStarting = (stderr: TextOutput): (() => boolean) => {
  let isOutdated = false
  const end = (signal: NodeJS.Signals): never => {
    stderr.write(`trellis: ${signal} before the start was over\n`)
    process.exit(exitCodes.ok.code)
  }
  const keep = (): void => {
    isOutdated = true
  }
  process.on('SIGTERM', end).on('SIGINT', end).on('SIGHUP', keep)
  return () => {
    process.off('SIGTERM', end).off('SIGINT', end).off('SIGHUP', keep)
    return isOutdated
  }
}

/** For a process whose parent is told by signals: a terminal sends them to all of a group. An uncaught error ends it, and it is replaced. */
export const leaveSignals = (gateway: Pick<RunningGateway, 'faulted'>): void => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  process.on('uncaughtException', (error) => {
    gateway.faulted(error)
    process.exit(exitCodes.crashed.code)
  })
}
