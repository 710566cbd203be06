import { requestField } from '../http/fields.ts'
import type { ResponseHead } from '../http/message.ts'
import type { CacheRead } from './cache-read.ts'
import { freshnessLifetime } from './freshness.ts'
import { responseControl } from './response-control.ts'
import { decideStorage, type StorageDecision } from './storability.ts'

/** May what was received at that time be kept for others who read the same? */
export const storageOf = (head: ResponseHead, read: CacheRead, receivedAt: number): StorageDecision => {
  const control = responseControl(head.fields)
  const freshness = freshnessLifetime(head, control, read.policy, receivedAt)
  const asked = {
    partition: read.partition,
    authorized: requestField(read.fields, 'authorization') !== undefined,
  }
  return decideStorage(head, asked, read.policy, control, freshness)
}
