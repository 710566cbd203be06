import type { ProtocolFault } from './bundle.ts'
import { faultIn as of } from './fault-in.ts'

const graphqlRequests = of('graphql/requests.ts')
const upstreamBatch = of('batch/send/upstream-batch.ts')
const together = of('batch/send/send-together.ts')

/** What a request of GraphQL or a batch means, and what it has changed. */
export const requestFaults: readonly ProtocolFault[] = [
  of('graphql/tagger.ts')(
    'graphql: a mutation drops nothing',
    'return groups.length > 0 ? groups : [names.all]',
    'return groups',
  ),
  of('exchange/config-snapshot.ts')(
    'graphql: a mutation does not reach the other service',
    'filter((other) => other.memo !== memo)',
    'filter((other) => other.memo === memo)',
  ),
  of('graphql/meaning.ts')(
    'graphql: variables are not part of the key',
    "...['query', 'operationName', 'variables', 'extensions'].map",
    "...['query', 'operationName', 'extensions'].map",
  ),
  graphqlRequests(
    'graphql: a mutation by GET is forwarded',
    `          : mutationByGet
      case`,
    `          : this.#forwarded(sent, 'pass', 'unknown')
      case`,
  ),
  of('batch/order/plan-order.ts')(
    'batch: nothing waits for what stands before it',
    'if (earlier !== undefined && mustKeepOrder(earlier, later, order)) waits.push(index)',
    'if (earlier !== undefined && mustKeepOrder(earlier, later, order)) waits.slice(index)',
  ),
  of('batch/send/collapse-reads.ts')(
    'batch: a read after a write is one with a read before it',
    '[item.method, item.path, item.query, item.headers, waits]',
    '[item.method, item.path, item.query, item.headers, waits?.length === -1]',
  ),
  upstreamBatch(
    'batch: an item has the response of another one',
    'resolve({ ...(responses[at] as ItemResponse), ...ofAll })',
    'resolve({ ...(responses[responses.length - 1 - at] as ItemResponse), ...ofAll })',
  ),
  together(
    'batch: what was sent together counts as not sent',
    'if (request.progress !== undefined) progresses.push(request.progress)',
  ),
  of('batch/idempotency.ts')(
    'batch: it runs again with the same key',
    "return entry.fingerprint === fingerprint ? entry.state : { kind: 'mismatch' }",
    'remove(key)',
  ),
  of('service/decide.ts')(
    'deletion: it changes nothing',
    "? !isSafe(method) && declaredEffect !== 'safe'",
    "? !isSafe(method) && method !== 'DELETE'",
  ),
]
