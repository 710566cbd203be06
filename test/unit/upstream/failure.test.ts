import { errors } from 'undici'
import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/errors.ts'
import { toGatewayError } from '../../../src/upstream/failure.ts'

const coded = (code: string, cause?: unknown) => Object.assign(new Error(code, { cause }), { code })

test.each([
  ['ECONNREFUSED', 'upstream_unreachable'],
  ['ENOTFOUND', 'upstream_unreachable'],
  ['CERT_HAS_EXPIRED', 'upstream_unreachable'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'upstream_unreachable'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'upstream_unreachable'],
  ['ECONNRESET', 'upstream_broken'],
  ['HPE_INVALID_CONSTANT', 'upstream_broken'],
  ['ETIMEDOUT', 'upstream_timeout'],
  ['UND_ERR_ABORTED', 'client_gone'],
  ['UND_ERR_CLOSED', 'shutting_down'],
  ['SOMETHING_ELSE', 'internal'],
  ['constructor', 'internal'],
])('%s means %s', (code, meaning) => {
  expect(toGatewayError(coded(code)).code).toBe(meaning)
})

test('the cause inside what is not known decides', () => {
  const cause = new GatewayError('upstream_busy', { retryAfterSeconds: 1 })
  expect(toGatewayError(coded('SOMETHING_ELSE', cause))).toBe(cause)
  expect(toGatewayError(coded('UND_ERR_SOCKET', coded('ECONNREFUSED'))).code).toBe('upstream_unreachable')
})

test('if several addresses were tried, the error of the first one counts', () => {
  expect(toGatewayError(new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')])).code).toBe(
    'upstream_unreachable',
  )
})

test('a thrown value that is not an error is an internal error', () => {
  expect(toGatewayError('text').code).toBe('internal')
  expect(toGatewayError(new errors.InvalidArgumentError('x')).code).toBe('internal')
})
