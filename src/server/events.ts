import type { MessageFault } from './listener/message-faults.ts'

/** Why what came over a connection is no request that is taken. `framing` and `chunking` leave open where a request ends. */
export type ProtocolFault =
  | MessageFault
  | 'start-line'
  | 'field'
  | 'framing'
  | 'chunking'
  | 'too-large'
  | 'timeout'
  | 'cut-off'
  | 'other'

/** What the public side reports of its connections; requests are the pipeline's business. Closed words only, never an address. */
export type EdgeEvent =
  | {
      readonly kind: 'connection-cut'
      /** `too-many`: limits.connections; `address`: limits.connectionsPerAddress; `slow-reader`: limits.readerTimeout; `resets`: too many HTTP/2 streams reset; `drain`: drain.timeout. */
      readonly reason: 'too-many' | 'address' | 'slow-reader' | 'resets' | 'drain'
    }
  | { readonly kind: 'rate-limited'; readonly limit: string }
  | { readonly kind: 'no-request'; readonly reason: ProtocolFault }
