import type { WorkerEnd } from './worker-messages.ts'

/** How a worker ended, or could not even be started. */
export type WorkerEnding = {
  readonly member: string
  /** 0: the system gave it no process; `code` says why. */
  readonly pid: number
  readonly end: WorkerEnd
  readonly code: number | string
  /** Writes that it had begun; they count as carried out, perhaps. */
  readonly unsettled: number
}

/** What the parent reports of its workers. */
export type WorkerEvent =
  | { readonly kind: 'worker-ready'; readonly member: string; readonly pid: number }
  | (WorkerEnding & { readonly kind: 'worker-ended'; readonly nextInMs: number })
