import type { ResponseHead } from '../http/message.ts'
import type { CachePolicy } from './policy.ts'
import type { NoStoreReason } from './storability.ts'

const serverErrors: ReadonlySet<number> = new Set([500, 502, 503, 504])

/** Is this an upstream that failed, rather than an answer? */
export const isServerError = (head: ResponseHead): boolean => serverErrors.has(head.status)

const refusals: ReadonlySet<number> = new Set([
  400, 406, 408, 411, 412, 413, 414, 415, 416, 417, 421, 426, 428, 429, 431,
])

/** Does it say more about the request that was sent than about its target? The next reader's request may be answered otherwise. */
export const isOfRequest = (head: ResponseHead): boolean => isServerError(head) || refusals.has(head.status)

const harmless: ReadonlySet<NoStoreReason> = new Set(['status', 'no-freshness'])
/** `safe` asks without credentials and cookies, so that an error says nothing of the one who asked, whatever its directives say. */
const harmlessWhenAnonymous: ReadonlySet<NoStoreReason> = new Set([...harmless, 'private', 'no-store'])

/** May readers who wait at this moment share an error that is not kept? A failing upstream is not asked again by each of them. */
export const mayShareError = (head: ResponseHead, reason: NoStoreReason, policy: CachePolicy): boolean =>
  isServerError(head) && (policy.profile === 'safe' ? harmlessWhenAnonymous : harmless).has(reason)
