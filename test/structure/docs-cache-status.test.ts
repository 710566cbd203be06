import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { BypassReason } from '../../src/cache/decide-caching.ts'
import type { HitDetail, NoStoreReason, StatusDetail } from '../../src/cache/events.ts'

// The compiler holds each list to its union: a reason that is missing here, or that does not exist, fails check:types.

const bypass: Record<BypassReason, true> = {
  method: true,
  'no-rule': true,
  'ambiguous-path': true,
  'request-content': true,
  'request-no-store': true,
  authorization: true,
  cookie: true,
  'creating-read': true,
  'acting-script': true,
  cron: true,
  'method-override': true,
  nonce: true,
  password: true,
  'context-edit': true,
  'non-public-status': true,
  'api-key': true,
}

const notStored: Record<NoStoreReason, true> = {
  status: true,
  'no-store': true,
  private: true,
  'set-cookie': true,
  token: true,
  authorization: true,
  'vary-any': true,
  'must-understand': true,
  'no-freshness': true,
  'event-stream': true,
  'too-large': true,
  'no-room': true,
  overtaken: true,
  unsettled: true,
  'not-admitted': true,
  unreadable: true,
  coding: true,
  method: true,
}

const noFault: Record<HitDetail | Exclude<StatusDetail, BypassReason | NoStoreReason>, true> = {
  revalidating: true,
  error: true,
  shared: true,
  streamed: true,
  'only-if-cached': true,
  nothing: true,
  reported: true,
  table: true,
  harmless: true,
}

const page = await readFile('docs/why-not-cached.md', 'utf8')

/** First cells of the table under a heading. */
const explained = (heading: string): string[] => {
  const section = page.split(/^#+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? ''
  return [...section.matchAll(/^\|`([^`]+)`\|/gm)].map(([, detail = '']) => detail).sort()
}

test.each([
  ['The request bypassed the cache', bypass],
  ['The response was not stored', notStored],
  ['No fault', noFault],
])('docs/why-not-cached.md explains each detail of Cache-Status, and no other: %s', (heading, details) => {
  expect(explained(heading)).toEqual(Object.keys(details).sort())
})
