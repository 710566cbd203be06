import { expect, test } from 'vitest'
import { leavesTasks, verdictOf, writeKindOf } from '../../../../src/exchange/write/write-verdict.ts'
import type { GatewayResponse } from '../../../../src/http/message.ts'
import type { NoChangeClaim, ReceiptNonce } from '../../../../src/service/contract.ts'
import { ready } from '../../../exchange/exchange-of.ts'

const context = ready('/site/v2/posts', { method: 'POST' })
const response: GatewayResponse = { status: 200, headers: [], content: undefined }
const nonce = { header: 'n', key: 'k', read: () => ({ kind: 'nothing' }) } as unknown as ReceiptNonce
const claim = { by: 'table' } as NoChangeClaim
const refuted = { by: 'table', confirmedBy: () => false } as unknown as NoChangeClaim

test.each([
  ['the receipt says more than the table', claim, false, response, nonce, 'receipt', 'nothing', false],
  ['the table knows the request', claim, false, response, undefined, 'nothing-stale', 'table', false],
  ['the response refutes the table', refuted, false, response, undefined, 'response', 'unclassified', true],
  [
    'of one that was sent twice neither counts',
    claim,
    false,
    { ...response, isRepeated: true },
    nonce,
    'response',
    'unclassified',
    true,
  ],
  ['scheduled tasks alone', undefined, true, response, undefined, 'tasks-alone', 'unclassified', true],
  ['nothing else is known', undefined, false, response, undefined, 'response', 'unclassified', true],
] as const)('%s', (_, claim, isTasksAlone, response, nonce, kind, writeKind, tasks) => {
  const verdict = verdictOf(context, claim, isTasksAlone, response, nonce)
  expect([verdict.kind, writeKindOf(context, verdict), leavesTasks(verdict)]).toEqual([
    kind,
    writeKind,
    tasks,
  ])
})
