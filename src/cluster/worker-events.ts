import type { WorkerEnd } from './worker-messages.ts'

/** How a worker ended, or failed to start. */
export type WorkerEnding = {
  readonly member: string
  /** 0: the system could not start the process; `code` gives the reason. */
  readonly pid: number
  readonly end: WorkerEnd
  readonly code: number | string
  /** Writes that it had begun; their outcome is unknown. */
  readonly unsettled: number
}

/** Events of the parent about its workers. */
export type WorkerEvent =
  | { readonly kind: 'worker-ready'; readonly member: string; readonly pid: number }
  | (WorkerEnding & { readonly kind: 'worker-ended'; readonly nextInMs: number })
