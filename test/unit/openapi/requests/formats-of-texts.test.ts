import { expect, test } from 'vitest'
import { createSchemaChecker, noExactIntegers } from '../../../../src/openapi/requests/schema-checker.ts'

const { check } = createSchemaChecker(new Map())

test.each([
  ['joe@example.org', true],
  ['"joe bloggs"@example.org', true],
  ['"joe@bloggs"@example.org', true],
  ['"joe \\" bloggs"@example.org', true],
  ['joe bloggs@example.org', false],
  ['"joe"bloggs"@example.org', false],
  ['"joe@example.org', false],
  ['"joe"', false],
])('email: %s', (text, isValid) => {
  expect(check({ type: 'string', format: 'email' }, text, noExactIntegers)).toHaveLength(isValid ? 0 : 1)
})
