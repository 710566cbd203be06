import type { Writable } from 'node:stream'

/** Exit codes of the process; docs/configuration.md shows the same table. */
export const exitCodes = {
  ok: { code: 0, meaning: 'done; `start`: stopped by a signal, every request in flight was finished' },
  configFaults: { code: 1, meaning: 'the configuration has faults' },
  drift: {
    code: 1,
    meaning: '`routes --drift`: an upstream announces something else than its contract says',
  },
  findings: {
    code: 1,
    meaning: '`check --upstreams`: an upstream and the configuration do not fit',
  },
  usage: { code: 2, meaning: 'the command line is not understood' },
  notStarted: {
    code: 3,
    meaning: 'the configuration is right and the gateway could not start (port taken, no permission)',
  },
  crashed: { code: 4, meaning: 'an unexpected error while running; what could be finished was' },
  forced: {
    code: 5,
    meaning: 'stopped before every request in flight was finished: second signal, or drain took too long',
  },
  indexUnread: {
    code: 6,
    meaning: "`routes --drift`, `routes --upstreams`: an upstream's index could not be read",
  },
} as const satisfies Record<string, { readonly code: number; readonly meaning: string }>

export type ExitReason = keyof typeof exitCodes

type OutputPorts = { readonly stdout: Writable; readonly stderr: Writable; exit(code: number): void }

/**
 * Handles failed writes, which would otherwise end the process with a stack trace. Only commands that print and end write to
 * stdout here (the log of a gateway has its own stream); losing messages on stderr is accepted.
 */
export const handleOutputErrors = ({ stdout, stderr, exit }: OutputPorts): void => {
  stderr.on('error', () => {})
  stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // The reader closed the pipe, as in `trellis schema | head`.
    if (code === 'EPIPE') return
    stderr.write(`trellis: cannot write to stdout: ${message}\n`)
    exit(exitCodes.crashed.code)
  })
}
