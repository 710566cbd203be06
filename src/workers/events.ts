import type { WorkerEnd } from './messages.ts'

/** What the parent reports of its workers. */
export type WorkerEvent =
  | { readonly kind: 'worker-ready'; readonly member: string; readonly pid: number }
  /** `unsettled`: writes that it had begun; they count as carried out, perhaps. */
  | {
      readonly kind: 'worker-ended'
      readonly member: string
      readonly pid: number
      readonly end: WorkerEnd
      readonly code: number | string
      readonly unsettled: number
      readonly nextInMs: number
    }
