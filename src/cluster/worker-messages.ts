import type { Appended, Position, Push, Synced } from './ledger.ts'

/** What one worker is told when it starts. Plain data: it goes through JSON. */
export type Assignment = {
  /** Name among the members; another one for each process. */
  readonly member: string
  readonly leaseMs: number
  /** What the one who composes the gateway has to say; not looked at here. */
  readonly settings: unknown
}

/** How the workers stand, for readiness and metrics. */
export type Standing = {
  readonly wanted: number
  readonly ready: number
  /** Have all been ready once? */
  readonly complete: boolean
  /** Workers that ended unasked, by how. */
  readonly ended: Readonly<Record<WorkerEnd, number>>
}

/** `stuck`: it said nothing for so long that it was killed. */
export type WorkerEnd = 'exit' | 'signal' | 'stuck'

/** What the system said of a socket that could not be opened; of other failures nothing. */
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

/** What one worker asks of all of them. */
export type Question = { readonly topic: string; readonly content: unknown }

export type ToParent =
  /** The worker listens: what is said before would be lost. */
  | { readonly kind: 'hello' }
  /** Nothing else may need to be said for long: the ledger can be in another place. */
  | { readonly kind: 'alive' }
  | { readonly kind: 'ready'; readonly addresses: unknown }
  | { readonly kind: 'failed'; readonly message: string; readonly facts: FailureFacts }
  /** An operator has asked this worker to end all of them. */
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
