import { expect, test } from 'vitest'
import { GatewayError } from '../../src/errors.ts'

test('a refusal has no stack trace, and errors after it have one', () => {
  const calls = (error: Error): number => (error.stack ?? '').split('\n    at ').length - 1
  expect(calls(new GatewayError('no_route', { cause: new Error('refused') }))).toBe(0)
  expect(calls(new Error('after it'))).toBeGreaterThan(0)
})
