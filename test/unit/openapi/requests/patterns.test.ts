import { describe, expect, test } from 'vitest'
import { safePattern } from '../../../../src/openapi/requests/safe-pattern.ts'
import { compilePattern } from '../../../../src/wordpress/arguments/scalars.ts'
import { cost } from '../../../support/cost.ts'

describe('patterns from schemas', () => {
  test.each([
    ['[a-zA-Z0-9_\\%-]+', 'a b', true],
    ['[a-zA-Z0-9_\\%-]+', '!!', false],
    ['[a-zA-Z0-9_%-]+', '', false],
    ['^[a-z]+$', 'abc', true],
    ['^[a-z]+$', 'abc1', false],
    ['^#[a-f0-9]{3}$', '#fff', true],
    ['\\d\\d:\\d\\d', 'at 12:30', true],
    ['abc', 'xxabcxx', true],
    ['^a*', 'b', true],
    ['[^\\]]', ']', false],
  ])('%s on %j: %s', (pattern, text, expected) => {
    expect(compilePattern(pattern)(text)).toBe(expected)
  })

  test.each([
    '(a+)+$',
    'a+b',
    'a*a*a*b',
    '[a-z]+$',
    '(?:a|a)*',
    'a|b',
    '(?=a)',
    'a+?',
    'a++',
    '\\1',
    '[a-z]{1,9}x',
    '(',
    '[',
    '^a+b+$',
  ])('%s could backtrack, so the check is left to the upstream', (pattern) => {
    expect(compilePattern(pattern)('a')).toBeUndefined()
  })

  test('a text of a megabyte and a pattern of a kilobyte are left to the upstream', () => {
    expect(compilePattern('a')('b'.repeat(1_000_000))).toBeUndefined()
    expect(compilePattern('a'.repeat(1024))('a')).toBeUndefined()
  })
})

describe('patterns of OpenAPI documents', () => {
  // From a document of AWS: three thousand instructions for each character.
  const large = '^([^/]([!-~]+/){1,511})?[A-Za-z0-9_+=,.@-]{1,64}$'

  test('a text is compared with a large pattern', () => {
    expect(safePattern(large)?.test('name')).toBe(true)
    expect(safePattern(large)?.test('na me')).toBe(false)
  })

  test('a text that is too long for its pattern is left to the upstream, without being read', () => {
    const read = (): void => {
      expect(safePattern(large)?.test(`a${'!/'.repeat(2_500)} `)).toBe(true)
      expect(safePattern('^(?:[a-z])$')?.test(' '.repeat(1_000_000))).toBe(true)
    }
    expect(cost(read, 100)).toBeLessThan(100)
  })

  test('a small pattern reads five kilobytes', () => {
    expect(safePattern('^[a-z]+$')?.test(`${'a'.repeat(5_000)}!`)).toBe(false)
  })
})
