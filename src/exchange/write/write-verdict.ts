import { startsTasks } from '../../cache/decide-caching.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { KeyedWriteReceipt, NoChangeClaim, ReceiptNonce } from '../../service/contract.ts'
import type { WriteKind } from '../events.ts'
import type { ValidatedContext } from '../request-context.ts'
import { isConfirmed } from './no-change-claim.ts'
import { getsReceipt } from './receipt-nonce.ts'
import { isCoveredByFeed } from './write-invalidations.ts'

/** What says which stored responses a write has made stale. */
export type WriteVerdict =
  /** The write receipt of the companion, which knows more than the table. */
  | { readonly kind: 'receipt'; readonly receipt: KeyedWriteReceipt }
  /** It has changed nothing, or the upstream's log of changes has it: nothing is dropped. */
  | { readonly kind: 'nothing-stale'; readonly by: 'table' | 'reported' }
  /** It was for scheduled tasks alone: each run drops what it may have changed, and not each request. */
  | { readonly kind: 'tasks-alone' }
  /** The table, from the response. */
  | { readonly kind: 'response' }

/** Of one that was sent twice the companion says too little. */
const receiptIn = (
  { hints, isRepeated }: GatewayResponse,
  nonce: ReceiptNonce | undefined,
): KeyedWriteReceipt | undefined => {
  const receipt = isRepeated === true ? undefined : nonce?.read(hints?.receipt)
  return receipt === undefined || nonce === undefined ? undefined : { ...receipt, key: nonce.key }
}

export const startsTasksAlone = (context: ValidatedContext): boolean => {
  const { service, snapshot, request, matching, query, uncacheable, policy } = context
  if (!startsTasks(uncacheable) || policy.declaredEffect === 'writes') return false
  const { scheduledTasks, hasRoutes } = service.contract
  if (scheduledTasks?.areAlone(request.method, matching.path, query) !== true) return false
  return hasRoutes || snapshot.sharesRoutes(service)
}

/**
 * Tasks run behind the response, without a write receipt. While the upstream's log of changes is read, what they write is in it, as when
 * they start past the gateway.
 */
const isLeftToLog = (context: ValidatedContext, { status }: GatewayResponse): boolean =>
  startsTasksAlone(context) && status < 500 && getsReceipt(context)

/** `isTasksAlone`: it began as a request for scheduled tasks alone; the configuration may have changed since. */
export const verdictOf = (
  context: ValidatedContext,
  claim: NoChangeClaim | undefined,
  isTasksAlone: boolean,
  response: GatewayResponse,
  nonce: ReceiptNonce | undefined,
): WriteVerdict => {
  const receipt = receiptIn(response, nonce)
  if (receipt !== undefined) return { kind: 'receipt', receipt }
  if (isConfirmed(claim, response)) return { kind: 'nothing-stale', by: 'table' }
  if (isLeftToLog(context, response)) return { kind: 'nothing-stale', by: 'reported' }
  return { kind: isTasksAlone ? 'tasks-alone' : 'response' }
}

/** For metrics and traces. */
export const writeKindOf = ({ service, snapshot }: ValidatedContext, verdict: WriteVerdict): WriteKind => {
  if (verdict.kind === 'nothing-stale') return verdict.by
  if (verdict.kind !== 'receipt') return 'unclassified'
  const { receipt } = verdict
  if (receipt.kind !== 'rows') return 'nothing'
  return [service, ...snapshot.sharing(service)].some((service) => isCoveredByFeed(service, receipt))
    ? 'reported'
    : 'unclassified'
}

export const receiptOf = (verdict: WriteVerdict): KeyedWriteReceipt | undefined =>
  verdict.kind === 'receipt' ? verdict.receipt : undefined

/** Does the write itself drop nothing? */
export const dropsNothing = ({ kind }: WriteVerdict): boolean =>
  kind === 'nothing-stale' || kind === 'tasks-alone'

/** Does nothing say what the tasks that it has started will change? */
export const leavesTasks = ({ kind }: WriteVerdict): boolean => kind === 'response' || kind === 'tasks-alone'
