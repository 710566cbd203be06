import type { Writable } from 'node:stream'

/** How the process ends, one row each; docs/configuration.md shows the same table. */
export const exitCodes = {
  ok: {
    code: 0,
    meaning: 'success; `start`: stopped by a signal after all requests in flight were finished',
  },
  configFaults: { code: 1, meaning: 'the configuration has faults' },
  drift: {
    code: 1,
    meaning: '`routes --drift`: a response differs from what an upstream announces',
  },
  findings: {
    code: 1,
    meaning: '`check --upstreams`: the configuration does not fit an upstream',
  },
  usage: { code: 2, meaning: 'wrong command line' },
  notStarted: {
    code: 3,
    meaning: 'the gateway could not start (port in use, no permission)',
  },
  crashed: {
    code: 4,
    meaning: 'an unexpected error while running; requests in flight were finished where possible',
  },
  forced: {
    code: 5,
    meaning: 'stopped with requests in flight: second signal, or `drain.timeout` was over',
  },
  indexUnread: {
    code: 6,
    meaning: '`routes --drift`, `routes --upstreams`: the index of an upstream could not be read',
  },
} as const satisfies Record<string, { readonly code: number; readonly meaning: string }>

/** The name of a row of the table. */
export type ExitReason = keyof typeof exitCodes

/** What errors of the process's own output are told to. */
type OutputPorts = { readonly stdout: Writable; readonly stderr: Writable; exit(code: number): void }

/**
 * What to do when output finds no place; unheard, either error would end the process with a stack trace. Only commands that
 * answer and end write to stdout, the log of a gateway has its own way there; what goes to stderr may be lost.
 */
export const hearOutputFaults = ({ stdout, stderr, exit }: OutputPorts): void => {
  stderr.on('error', () => {})
  stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // The reader has seen enough, as in `trellis schema | head`.
    if (code === 'EPIPE') return
    stderr.write(`trellis: cannot write to stdout: ${message}\n`)
    exit(exitCodes.crashed.code)
  })
}
