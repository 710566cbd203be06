import type { Effect } from '../../http/methods.ts'
import type { ValidatedContext } from '../request-context.ts'

/** A request as it is forwarded: again, or beside its response. */
export type Outgoing = {
  readonly context: ValidatedContext
  readonly effect: Effect
  /** Request headers that the cache adds (validators), and those that it strips: what it adds is among them. */
  readonly extraHeaders: Readonly<Record<string, string>>
  readonly stripped: ReadonlySet<string>
  /** `Accept-Encoding` as it is sent. */
  readonly acceptEncoding: string
  /** No client waits for the response, and it takes no client's share of the upstream's slots. */
  readonly background: boolean
  readonly signal: AbortSignal
}
