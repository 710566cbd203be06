import type { Writable } from 'node:stream'

/** Exit codes of the process; docs/configuration.md shows the same table. */
export const exitCodes = {
  ok: { code: 0, meaning: 'success; `start`: stopped by a signal, all requests in flight finished' },
  configFaults: { code: 1, meaning: 'the configuration has faults' },
  drift: { code: 1, meaning: '`routes --drift`: a response differs from what an upstream announces' },
  findings: { code: 1, meaning: '`check --upstreams`: the configuration does not fit an upstream' },
  notReady: { code: 1, meaning: '`status`: the gateway is not ready' },
  usage: { code: 2, meaning: 'wrong command line' },
  notStarted: { code: 3, meaning: 'could not start (port in use, no permission)' },
  crashed: { code: 4, meaning: 'unexpected error while running' },
  forced: { code: 5, meaning: 'stopped with requests in flight: second signal, or end of `drain.timeout`' },
  indexUnread: { code: 6, meaning: '`routes --drift`, `routes --upstreams`: no index from an upstream' },
  adminFailed: {
    code: 7,
    meaning: '`status`, `purge`, `warm`: the admin side does not respond, or refuses the request',
  },
  fileExists: { code: 8, meaning: '`init`: the file exists already, or cannot be written' },
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
