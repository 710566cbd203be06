/** Reasons to buffer bytes; also a metric label. */
export const bufferedWork = [
  /** A response that is being stored, or read whole before it is judged. */
  'fill',
  /** A request body that is read whole. */
  'request-body',
  'batch-item',
  /** The response to a write, which shows what the write changed. */
  'write-answer',
  /** A response that its client has not read yet. */
  'slow-reader',
] as const
export type BufferedFor = (typeof bufferedWork)[number]

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

/** For content with its own bound. */
export const unlimited: Reservation = { reserve: () => true, shrink: () => {}, release: () => {} }
