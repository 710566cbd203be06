import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  elementTexts,
  isJsonObject,
  memberText,
  nestingDepth,
  valueEnd,
  visitMembers,
} from '../../../src/http/json-text.ts'

/** Valid JSON texts of any value, with and without white space, with every character of strings escaped or none. */
const texts = fc
  .tuple(fc.jsonValue(), fc.constantFrom('', ' ', '\n', '\t', ' \r\n\t'), fc.boolean())
  .map(([value, space, isEscaped]) => {
    const text = JSON.stringify(value, undefined, space)
    if (!isEscaped) return `${space}${text}${space}`
    return text.replaceAll(
      /[^\n\r\t -~]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
  })

const membersOf = (text: string): [name: string, value: string][] => {
  const members: [string, string][] = []
  visitMembers(text, (name, from, end) => members.push([name, text.slice(from, end)]))
  return members
}

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

describe('the parts of any JSON text are those that JSON.parse reads', () => {
  test('members of an object', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const value: unknown = JSON.parse(text)
        const found = membersOf(text).map(([name, part]) => [name, JSON.parse(part)])
        expect(found).toEqual(isJsonObject(value) ? expect.arrayContaining(Object.entries(value)) : [])
        expect(found).toHaveLength(isJsonObject(value) ? Object.keys(value).length : 0)
      }),
    )
  })

  test('elements of a list', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const value: unknown = JSON.parse(text)
        const found = elementTexts(text.trim())?.map((part): unknown => JSON.parse(part))
        expect(found).toEqual(Array.isArray(value) ? value : undefined)
      }),
    )
  })

  test('the end of a value', () => {
    fc.assert(
      fc.property(texts, fc.constantFrom(',1', ']', '}', ' ', ''), (text, rest) => {
        const value = text.trim()
        expect(valueEnd(value + rest, 0)).toBe(value.length)
      }),
    )
  })

  test('how deep objects and lists are nested', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(nestingDepth(text)).toBe(depthOf(JSON.parse(text)))
      }),
    )
  })
})

describe('the text keeps details that a parsed value would lose', () => {
  test.each([
    ['an integer beyond 2^53', '{"id":9007199254740993}', [['id', '9007199254740993']]],
    ['zeros of a fraction', '{"n": 1.50 }', [['n', '1.50']]],
    [
      'a repeated name',
      '{"a":1,"b":2,"a":3}',
      [
        ['a', '1'],
        ['b', '2'],
        ['a', '3'],
      ],
    ],
    ['a name with escapes', '{"\\u0061":"\\u0062"}', [['a', '"\\u0062"']]],
    [
      'quotes and backslashes',
      '{"a\\"":"\\\\","b":"\\\\\\""}',
      [
        ['a"', '"\\\\"'],
        ['b', '"\\\\\\""'],
      ],
    ],
    [
      'brackets in strings',
      '{"a":"}{][","b":["]"]}',
      [
        ['a', '"}{]["'],
        ['b', '["]"]'],
      ],
    ],
    ['an empty object', '{ }', []],
  ])('%s', (_, text, members) => {
    expect(membersOf(text)).toEqual(members)
  })

  test('of a repeated member the last one counts', () => {
    expect(memberText('{"a":1,"b":2,"a":[3]}', 'a')).toBe('[3]')
    expect(memberText('{"a":1}', 'b')).toBeUndefined()
    expect(memberText('["a"]', 'a')).toBeUndefined()
  })
})

test.each([
  ['[{"a":[]},[[[]]],"[[[[["]', 4],
  ['"["', 0],
  ['[[', 2],
  ['["[', 1],
  ['{"a":[', 2],
  ['', 0],
])('nesting is counted in text that is not parsed yet: %s', (text, depth) => {
  expect(nestingDepth(text)).toBe(depth)
})
