import type { Writable } from 'node:stream'
import { exitCodes } from './exit-codes.ts'

/** What errors of the process's own output are told to. */
export type OutputPorts = { readonly stdout: Writable; readonly stderr: Writable; exit(code: number): void }

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
