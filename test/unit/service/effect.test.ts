import { expect, test } from 'vitest'
import type { UncacheableReason } from '../../../src/cache/decide-caching.ts'
import { isRepeatable } from '../../../src/http/methods.ts'
import { isWrite } from '../../../src/service/decide.ts'

const pages = { hasRoutes: false, actsAsWrite: (uncacheable: UncacheableReason) => uncacheable === 'nonce' }

type Facts = {
  readonly declared?: 'writes' | 'safe'
  readonly uncacheable?: UncacheableReason
  readonly beside?: boolean
}

test.each<[string, Facts, boolean]>([
  ...['GET', 'HEAD', 'OPTIONS', 'TRACE', 'QUERY'].map((method): [string, Facts, boolean] => [
    method,
    {},
    false,
  ]),
  ...['POST', 'PUT', 'PATCH', 'DELETE', 'M-SEARCH', 'get'].map((method): [string, Facts, boolean] => [
    method,
    {},
    true,
  ]),
  ['GET', { declared: 'writes' }, true],
  ['QUERY', { declared: 'writes' }, true],
  ['POST', { declared: 'safe' }, false],
  ['GET', { uncacheable: 'nonce', beside: true }, true],
  ['GET', { uncacheable: 'nonce', beside: false }, false],
  ['GET', { uncacheable: 'password', beside: true }, false],
])('%s with %j writes: %s', (method, { declared, uncacheable, beside = false }, writes) => {
  const facts = { method, uncacheable, sharesRoutes: () => beside }
  expect(isWrite(pages, { declaredEffect: declared }, facts)).toBe(writes)
})

test.each([
  ['GET', 'read', true],
  ['GET', 'pass', true],
  ['GET', 'write', false],
  ['QUERY', 'pass', true],
  ['PUT', 'write', true],
  ['DELETE', 'write', true],
  ['POST', 'write', false],
  ['POST', 'pass', false],
] as const)('%s as a %s may be sent twice: %s', (method, effect, repeatable) => {
  expect(isRepeatable(method, effect)).toBe(repeatable)
})
