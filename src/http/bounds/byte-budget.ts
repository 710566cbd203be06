/** What bytes are buffered for; also a metric label. */
export type BufferedFor =
  /** A response that is being stored, or read whole before it is judged. */
  | 'fill'
  /** A request body that is read whole. */
  | 'request-body'
  /** An answer within a batch. */
  | 'batch-item'
  /** The answer to a write, which says what the write changed. */
  | 'write-answer'
  /** An answer that its client has not taken yet. */
  | 'slow-reader'

/** The bytes that one piece of work has buffered. */
export type Reservation = {
  /** False: the budget is used up, and nothing was reserved. */
  reserve(bytes: number): boolean
  /** Gives some of them back. */
  shrink(bytes: number): void
  /** Gives back all that are left, and takes no more: to be called at every end that the work can have. */
  release(): void
}

/** One bound over all that a process buffers and that is no stored response; `client`: address for which the work is done. */
export type ByteBudget = (work: BufferedFor, client: string) => Reservation

/** Of each chunk, beside its octets: objects, and the block that it was read into. A peer decides how many chunks it makes of a content. */
export const overheadOfChunk = 512

/** For what has a bound of its own. */
export const unlimited: Reservation = { reserve: () => true, shrink: () => {}, release: () => {} }
