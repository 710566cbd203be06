import type { Clock } from '../clock.ts'
import type { WorkerEvent } from './worker-events.ts'
import type { Question } from './worker-messages.ts'
import type { Patience } from './workers/questions.ts'

/** Sends a question to all ready workers; returns the answers that arrive in time, or those of all workers that have not exited. */
export type Ask = (question: Question, patience: Patience) => Promise<readonly unknown[]>

export type SupervisorOptions = {
  readonly workers: number
  /** The program that each worker runs, and its arguments. */
  readonly program: { readonly file: string; readonly args: readonly string[] }
  readonly leaseMs: number
  /** Data for each worker that starts. */
  readonly settings: () => unknown
  /** Prepares a question for the workers, with the data that they need to answer it. */
  readonly through: (question: Question, ask: Ask) => Promise<readonly unknown[]>
  /** Called once or more when a worker requests the end of all workers. */
  readonly end: () => void
  /** The question for a worker that became ready with outdated data. */
  readonly outdated: (settings: unknown) => Question | undefined
  /** Time until a draining worker is killed. */
  readonly graceMs: number
  readonly clock: Clock
  readonly report: (event: WorkerEvent) => void
}
