import type { Appended, Position, Push, Synced } from './ledger.ts'

/** The assignment of a worker at its start. Plain data: it is sent as JSON. */
export type Assignment = {
  /** Name among the members, unique for each process. */
  readonly member: string
  readonly leaseMs: number
  /** Data of the composition root; not read here. */
  readonly settings: unknown
}

/** State of the workers, for readiness and metrics. */
export type Standing = {
  readonly wanted: number
  readonly ready: number
  /** Have all been ready once? */
  readonly complete: boolean
  /** Workers that ended unexpectedly, by cause. */
  readonly ended: Readonly<Record<WorkerEnd, number>>
}

/** `stuck`: its heartbeat was missing and it was killed. */
export type WorkerEnd = 'exit' | 'signal' | 'stuck'

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

/** The system's error for a socket that could not be opened; undefined for other failures. */
export type FailureFacts = {
  readonly code?: unknown
  readonly syscall?: unknown
  readonly address?: unknown
  readonly port?: unknown
}

export type LedgerCall =
  | { readonly name: 'sync'; readonly position: Position }
  | { readonly name: 'begin'; readonly write: string; readonly notes: readonly string[] }
  | { readonly name: 'append'; readonly notes: readonly string[]; readonly settled: readonly string[] }

export type LedgerAnswer = Synced | Appended | null

/** A question of one worker to all. */
export type Question = { readonly topic: string; readonly content: unknown }

export type ToParent =
  /** The worker listens: earlier messages would be lost. */
  | { readonly kind: 'hello' }
  /** The heartbeat: other messages may be rare when the ledger is in Redis. */
  | { readonly kind: 'alive' }
  | { readonly kind: 'ready'; readonly addresses: unknown }
  | { readonly kind: 'failed'; readonly message: string; readonly facts: FailureFacts }
  /** An operator has requested the end of all workers. */
  | { readonly kind: 'end' }
  | { readonly kind: 'call'; readonly id: number; readonly call: LedgerCall }
  | {
      readonly kind: 'acknowledge'
      readonly applied: Position
      readonly entries: number
      readonly writer: string | undefined
    }
  | { readonly kind: 'ask'; readonly id: number; readonly question: Question }
  | { readonly kind: 'answer'; readonly id: number; readonly content: unknown }

export type ToWorker =
  | { readonly kind: 'assigned'; readonly assignment: Assignment }
  | { readonly kind: 'called'; readonly id: number; readonly answer: LedgerAnswer }
  | { readonly kind: 'pushed'; readonly push: Push }
  | { readonly kind: 'asked'; readonly id: number; readonly question: Question }
  | { readonly kind: 'answered'; readonly id: number; readonly answers: readonly unknown[] }
  | { readonly kind: 'standing'; readonly standing: Standing }
  | { readonly kind: 'ended'; readonly member: string }
  | { readonly kind: 'drain' }
