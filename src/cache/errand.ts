import type { GatewayResponse } from '../http/message.ts'
import type { ExchangeTimes } from './age.ts'
import type { CacheRead, Forward } from './cache-read.ts'
import type { StoredResponse } from './stored-response.ts'

/** One forward: whom it is for, how to ask, and what it could validate. */
export type Errand = {
  readonly read: CacheRead
  readonly forward: Forward
  readonly candidate: StoredResponse | undefined
  /** Range and If-Range of a reader who asks alone. */
  readonly extra: Readonly<Record<string, string>>
  /** No reader waits for it. */
  readonly background: boolean
  /** To be called when the upstream is asked. */
  readonly asked: () => void
}

/** What came back from the upstream, and when. */
export type UpstreamAnswer = { readonly response: GatewayResponse; readonly times: ExchangeTimes }
