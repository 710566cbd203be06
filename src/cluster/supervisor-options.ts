import type { Clock } from '../clock.ts'
import type { WorkerEvent } from './worker-events.ts'
import type { Question } from './worker-messages.ts'
import type { Patience } from './workers/gathering.ts'

/** Asks all workers that are ready; gives the answers of those who answered in time, or of all who go on living. */
export type Ask = (question: Question, patience: Patience) => Promise<readonly unknown[]>

export type SupervisorOptions = {
  readonly workers: number
  /** The program that each worker runs, and its arguments. */
  readonly program: { readonly file: string; readonly args: readonly string[] }
  readonly leaseMs: number
  /** Handed to each worker that starts. */
  readonly settings: () => unknown
  /** Carries a question to the workers: as it is, or with what they all need to answer it. */
  readonly through: (question: Question, ask: Ask) => Promise<readonly unknown[]>
  /** A worker was asked to end all of them; called once or more. */
  readonly end: () => void
  /** What to ask of a worker that has become ready, since what was handed to it no longer holds. */
  readonly outdated: (settings: unknown) => Question | undefined
  /** Until a worker that was asked to finish is killed. */
  readonly graceMs: number
  readonly clock: Clock
  readonly report: (event: WorkerEvent) => void
}
