import { describe, expect, test } from 'vitest'
import {
  booleanOf,
  canonicalDateTime,
  formats,
  isIntegral,
  parseDateTime,
  toInteger,
} from '../../../../src/wordpress/arguments/scalars.ts'

// Expected values: PHP 8.2, is_numeric and the cast to int.
describe('integers', () => {
  test.each([
    ['5', 5],
    ['00012', 12],
    [' 2', 2],
    ['2 ', 2],
    ['\t2\n', 2],
    ['+5', 5],
    ['-5', -5],
    ['-0', 0],
    ['000', 0],
    ['-007', -7],
    ['2.0', 2],
    ['5.', 5],
    ['1e1', 10],
    ['1.e1', 10],
    ['+.5e1', 5],
    ['1e+1', 10],
    [2, 2],
    [2.0, 2],
    ['9007199254740993', '9007199254740993'],
    ['9223372036854775807', '9223372036854775807'],
    ['9223372036854775808', '9223372036854775807'],
    ['-9223372036854775809', '-9223372036854775808'],
    ['1e20', '9223372036854775807'],
    ['1e400', 0],
  ])('%j is %j', (value, expected) => {
    expect(isIntegral(value)).toBe(true)
    expect(toInteger(value)).toBe(expected)
    expect(Object.is(toInteger(value), -0)).toBe(false)
  })

  test.each([
    '',
    ' ',
    '-',
    '+ 5',
    '1e',
    '2.5',
    '.5',
    '1e-1',
    '0x1A',
    '0b1',
    '1_0',
    '1 2',
    '٣',
    '\u00a02',
    '\0' + '2',
    'INF',
    'NaN',
    'Infinity',
    2.5,
    true,
    null,
    [],
    {},
  ])('%j is not an integer', (value) => {
    expect(isIntegral(value)).toBe(false)
  })
})

describe('booleans', () => {
  test.each([
    ['true', true],
    ['TRUE', true],
    ['1', true],
    [1, true],
    [true, true],
    ['False', false],
    ['0', false],
    [0, false],
    [false, false],
  ])('%j is %j', (value, expected) => {
    expect(booleanOf(value)).toBe(expected)
  })

  test.each(['', 'yes', 'on', 'no', ' 1', '01', 'constructor', '__proto__', 2, null, [], {}])(
    '%j is none',
    (value) => {
      expect(booleanOf(value)).toBeUndefined()
    },
  )
})

// Expected values: PHP 8.2, WordPress's pattern and strtotime.
describe('date-times', () => {
  test.each([
    ['2026-02-01T00:00:00Z', '2026-02-01T00:00:00Z'],
    ['2026-02-01t00:00:00Z', '2026-02-01T00:00:00Z'],
    ['2026-02-01 00:00:00Z', '2026-02-01T00:00:00Z'],
    ['2026-02-01T00:00:00.999Z', '2026-02-01T00:00:00Z'],
    ['2026-02-01T02:00:00+02:00', '2026-02-01T00:00:00Z'],
    ['2026-02-01T02:00:00+02', '2026-02-01T00:00:00Z'],
    ['2026-01-31T19:00:00-05', '2026-02-01T00:00:00Z'],
    ['2026-02-01T00:00:00-00:00', '2026-02-01T00:00:00Z'],
    ['2026-02-01T00:00:00+24:30', '2026-01-30T23:30:00Z'],
    ['2026-02-01T00:00:00+99', '2026-01-27T21:00:00Z'],
    ['2026-02-31T00:00:00Z', '2026-03-03T00:00:00Z'],
    ['2026-00-01T00:00:00Z', '2025-12-01T00:00:00Z'],
    ['2026-02-00T00:00:00Z', '2026-01-31T00:00:00Z'],
    ['2026-02-01T24:59:59Z', '2026-02-02T00:59:59Z'],
    ['2026-02-01T00:00:60Z', '2026-02-01T00:01:00Z'],
    ['0099-01-01T00:00:00Z', '0099-01-01T00:00:00Z'],
    ['2026-02-01T00:00:00', '2026-02-01T00:00:00'],
    ['2026-02-01 00:00:00.5', '2026-02-01T00:00:00'],
    ['9999-12-31T23:59:59.1-12:00', '9999-12-31T23:59:59-12:00'],
  ])('%s is %s', (text, expected) => {
    expect(parseDateTime(text)).toBeDefined()
    expect(canonicalDateTime(text)).toBe(expected)
    expect(canonicalDateTime(expected)).toBe(expected)
  })

  test.each([
    '2026-02-01',
    '2026-13-01T00:00:00Z',
    '2026-02-32T00:00:00Z',
    '2026-02-01T25:00:00Z',
    '2026-02-01T00:60:00Z',
    '2026-02-01T00:00:61Z',
    '2026-02-01T00:00:00+25:00',
    '2026-02-01T00:00:00+14:60',
    '2026-02-01T00:00:00 02:00',
    '2026-02-01T00:00:00z',
    '1970-01-01T00:00:00Z',
    '1970-01-01T02:00:00+02:00',
    'now',
    '',
  ])('%s is not a date-time', (text) => {
    expect(parseDateTime(text)).toBeUndefined()
  })
})

describe('formats', () => {
  test.each([
    ['email', 'a@b.co', true],
    ['email', "o'brien+x@mail.example.org", true],
    ['email', 'a@b', false],
    ['email', 'a@b..co', false],
    ['email', 'a@-b.co', false],
    ['email', '@b.example', false],
    ['email', 'a b@c.example', false],
    ['ip', '127.0.0.1', true],
    ['ip', '::1', true],
    ['ip', 'fe80::1%eth0', false],
    ['ip', '256.0.0.1', false],
    ['uuid', '123e4567-e89b-12d3-a456-426614174000', true],
    ['uuid', '123E4567-E89B-12D3-A456-426614174000', false],
    ['hex-color', '#fff', true],
    ['hex-color', '#A1b2C3', true],
    ['hex-color', '#ffff', false],
    ['hex-color', 'fff', false],
  ])('%s %s: %s', (format, text, accepted) => {
    expect(formats.get(format)?.accepts(text)).toBe(accepted)
  })
})
