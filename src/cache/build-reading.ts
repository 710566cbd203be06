import type { ResponseHead } from '../http/message.ts'

/** What a build remembers of a stored response. */
export type ReadResponse = Pick<ResponseHead, 'status' | 'headers'> & {
  readonly key: string
  readonly content: Buffer
  readonly varyKey: string
  readonly tags: readonly string[]
}

/** Takes what a request of a build is answered with. */
export type BuildReading = {
  /** `isCurrent`: nothing that it shows has been invalidated since it was requested. */
  used(stored: ReadResponse, isCurrent: boolean): void
  /** A response that cannot be compared with a later one. */
  usedUnknown(): void
}
