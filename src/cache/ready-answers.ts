import type { CacheAnswer } from './reader-answer.ts'

/** Forms of an answer that depend on nothing else of their reader. */
export type SharedForm = 'whole' | 'bare' | 'confirmed'

/** The answers of one second of one stored response, by their form. */
export type ReadyAnswers = {
  /** The record that they were made of: a copy of it that says something else must not answer with them. */
  readonly of: object
  readonly ageSeconds: number
  readonly ttlSeconds: number
  /** Readers it has served. */
  given: number
} & Record<SharedForm, CacheAnswer | undefined>
