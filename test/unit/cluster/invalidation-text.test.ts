import { expect, test } from 'vitest'
import { decodeInvalidation, encodeInvalidation, type Invalidation } from '../../../src/cache/invalidation.ts'

const everything: Invalidation = { kind: 'all', mode: 'hard' }

test.each<readonly [Invalidation]>([
  [{ kind: 'tag', tag: 'site:post:1', mode: 'hard' }],
  [{ kind: 'tag', tag: '', mode: 'soft' }],
  [{ kind: 'quarantine', tag: 'a:b', forMs: 30_000 }],
  [{ kind: 'quarantine', tag: 'a:b', forMs: 0.5 }],
  [{ kind: 'prefix', service: 'site', prefix: '/a:b', mode: 'hard' }],
  [{ kind: 'prefix', service: 'site', prefix: '', mode: 'soft' }],
  [{ kind: 'all', mode: 'soft' }],
  [everything],
  [{ kind: 'documents', service: 'site', collection: '' }],
])('%j is read as it was written', (invalidation) => {
  expect(decodeInvalidation(encodeInvalidation(invalidation))).toEqual(invalidation)
})

test.each([
  '',
  ':',
  't',
  'tag:x',
  'x:y',
  'h:x',
  'hx:x',
  'h-1:x',
  'hNaN:x',
  'hInfinity:x',
  'p:site',
  'q',
  'd:site',
  'bb:',
])('what is no invalidation may mean anything: %j', (text) => {
  expect(decodeInvalidation(text)).toEqual(everything)
})
