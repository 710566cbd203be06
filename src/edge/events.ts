/** What the public side reports of its connections; requests are the pipeline's business. Closed words only, never an address. */
export type EdgeEvent = {
  readonly kind: 'connection-cut'
  /** `too-many`: limits.connections; `address`: limits.connectionsPerAddress; `slow-reader`: limits.readerTimeout; `drain`: drain.timeout. */
  readonly reason: 'too-many' | 'address' | 'slow-reader' | 'drain'
}
