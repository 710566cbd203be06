import { expect, test } from 'vitest'
import { leavesTasks, verdictOf, writeKindOf } from '../../../../src/exchange/write/write-verdict.ts'
import type { GatewayResponse } from '../../../../src/http/message.ts'
import type { HarmlessClaim, ReceiptNonce } from '../../../../src/service/contract.ts'
import { ready } from '../../../exchange/exchange-of.ts'

const context = ready('/site/v2/posts', { method: 'POST' })
const response: GatewayResponse = { status: 200, headers: [], content: undefined }
const nonce = { header: 'n', key: 'k', read: () => ({ kind: 'nothing' }) } as unknown as ReceiptNonce
const claim = { by: 'table' } as HarmlessClaim
const refuted = { by: 'table', shownBy: () => false } as unknown as HarmlessClaim

test.each([
  ['the receipt says more than the table', claim, false, response, nonce, 'receipt', 'nothing', false],
  ['the table knows the request', claim, false, response, undefined, 'harmless', 'table', false],
  ['the response refutes the table', refuted, false, response, undefined, 'response', 'unknown', true],
  [
    'of one that was sent twice neither counts',
    claim,
    false,
    { ...response, isRepeated: true },
    nonce,
    'response',
    'unknown',
    true,
  ],
  ['scheduled tasks alone', undefined, true, response, undefined, 'tasks-alone', 'unknown', true],
  ['nothing else is known', undefined, false, response, undefined, 'response', 'unknown', true],
] as const)('%s', (_, claim, isTasksAlone, response, nonce, kind, writeKind, tasks) => {
  const verdict = verdictOf(context, claim, isTasksAlone, response, nonce)
  expect([verdict.kind, writeKindOf(context, verdict), leavesTasks(verdict)]).toEqual([
    kind,
    writeKind,
    tasks,
  ])
})
