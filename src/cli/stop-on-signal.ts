import closeWithGrace from 'close-with-grace'
import type { RunningGateway, TextOutput } from './cli-ports.ts'
import { exitCodes } from './exit-codes.ts'

const reasonOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)

/**
 * From now on SIGTERM and SIGINT close the gateway once, and the process ends with a row of the exit table.
 * An uncaught error closes it too: what is in flight may still be finished, but nothing can be trusted for long.
 */
export const stopOnSignal = (gateway: RunningGateway, graceMs: number, stderr: TextOutput): void => {
  const end = (line: string, code: number): never => {
    stderr.write(`trellis: ${line}\n`)
    process.exit(code)
  }
  // Without a listener the signal would end the process at once, in the middle of requests.
  process.on('SIGHUP', () =>
    stderr.write('trellis: SIGHUP: a changed configuration takes a restart, nothing was done\n'),
  )
  closeWithGrace(
    {
      delay: graceMs,
      logger: false,
      // SIGHUP is answered above; an empty event loop cannot happen while the gateway listens.
      skip: ['SIGHUP', 'SIGUSR2', 'beforeExit'],
      onSecondSignal: (signal) =>
        end(`second signal (${signal}), not waiting any longer`, exitCodes.forced.code),
      onSecondError: (error) => end(`error while closing: ${reasonOf(error)}`, exitCodes.crashed.code),
      onTimeout: (delay) =>
        end(`not closed after ${delay} ms, not waiting any longer`, exitCodes.forced.code),
    },
    async ({ err, signal }) => {
      if (err !== undefined) stderr.write(`trellis: unexpected error, closing: ${reasonOf(err)}\n`)
      else stderr.write(`trellis: ${signal}, closing\n`)
      try {
        await gateway.close()
      } catch (error) {
        end(`error while closing: ${reasonOf(error)}`, exitCodes.crashed.code)
      }
      if (err !== undefined) process.exit(exitCodes.crashed.code)
    },
  )
}
