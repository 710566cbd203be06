import { requestField } from '../../http/fields.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { CacheRead } from '../cache-read.ts'
import { freshnessLifetime } from './freshness.ts'
import { responseControl } from './response-control.ts'
import { decideStorage, type StorageDecision } from './storability.ts'

/** May what was received at that time be kept for others who read the same? `authorized`: was the upstream asked with a credential? */
export const storageOf = (
  head: ResponseHead,
  read: CacheRead,
  receivedAt: number,
  authorized = requestField(read.fields, 'authorization') !== undefined,
): StorageDecision => {
  const control = responseControl(head.fields)
  const freshness = freshnessLifetime(head, control, read.policy, receivedAt)
  return decideStorage(head, { partition: read.partition, authorized }, read.policy, control, freshness)
}
