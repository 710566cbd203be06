import type { ReceiptNonce } from '../../service/contract.ts'
import type { ValidatedContext } from '../request-context.ts'

type Asking = Pick<ValidatedContext, 'receiptNonce' | 'snapshot' | 'service'>

/** For a request that counts as a write. Items of a batch that share one upstream request share its receipt: it says what all of them have written. */
export const nonceFor = ({ receiptNonce, snapshot, service }: Asking): ReceiptNonce | undefined =>
  receiptNonce ?? snapshot.newReceiptNonce(service)

/** Does the companion say what the request has changed, in a receipt or in its log of changes? */
export const getsReceipt = ({ receiptNonce, snapshot, service }: Asking): boolean =>
  receiptNonce !== undefined || snapshot.getsReceipts(service)
