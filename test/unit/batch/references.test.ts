import { expect, test } from 'vitest'
import {
  parseReference,
  pathSegment,
  pathTemplate,
  referencesIn,
  valuesAt,
  withValues,
} from '../../../src/batch/extensions/json-references.ts'
import { resolveItem } from '../../../src/batch/extensions.ts'
import { nestingDepth } from '../../../src/http/json-text.ts'
import { cost } from '../../support/cost.ts'

const valueAt = (text: string, pointer: readonly string[]): string | undefined =>
  valuesAt(text, [pointer])(pointer)

test.each([
  ['a#/body/id', { id: 'a', pointer: ['body', 'id'] }],
  ['new_1#/body/meta/a~1b/~01', { id: 'new_1', pointer: ['body', 'meta', 'a/b', '~1'] }],
  ['a#/', { id: 'a', pointer: [''] }],
  ['a#', undefined],
  ['a', undefined],
  ['#/body', undefined],
  ['1#/body', undefined],
  ['a#body', undefined],
  ['a#/b#/c', undefined],
  ['__proto__#/body', undefined],
  [`a#${'/x'.repeat(17)}`, undefined],
])('reads the reference %j', (text, reference) => {
  expect(parseReference(text)).toEqual(reference)
})

test.each([
  ['{"a":{"$ref":"x#/body/id"},"b":[1,{"$ref":"y#/status"}]}', ['x', 'y']],
  ['{"a":{"$ref":"x#/body/id","more":1}}', []],
  ['{"a":"{\\"$ref\\":\\"x#/body\\"}"}', []],
  ['{"a":{"$ref":7}}', []],
  ['{"a":{"more":1,"$ref":"x#/body/id"}}', []],
  ['{"$ref":{"$ref":"x#/body"}}', ['x']],
  [' { "\\u0024ref" : "x#/body" } ', ['x']],
  ['{"$ref":"x#/body","$ref":"y#/body"}', ['y']],
  ['{"$ref":"x#/body","$ref":"y#/body","more":{"$ref":"z#/body"}}', ['z']],
  ['{}', []],
  ['"{"', []],
])('finds the references of %s', (text, ids) => {
  const found = referencesIn(text)
  expect(typeof found === 'string' ? found : found.map(({ id }) => id)).toEqual(ids)
})

test('a text that resembles a reference but is not valid is malformed', () => {
  expect(referencesIn('{"a":{"$ref":"nothing"}}')).toBe('malformed')
})

test('a text with references may be nested 32 levels deep, one without as deep as it likes', () => {
  const nested = (inner: string, levels: number) => `${'['.repeat(levels)}${inner}${']'.repeat(levels)}`
  expect(referencesIn(nested('{"$ref":"x#/body"}', 32))).toHaveLength(1)
  expect(referencesIn(nested('{"$ref":"x#/body"}', 33))).toBe('too-deep')
  expect(referencesIn(nested('{}', 64))).toEqual([])
})

test('a value takes the place of a reference as it stands, and everything else stays as it was', () => {
  const text =
    '{"n":9007199254740993, "s":"\\u00e9\\"", "r":{"$ref":"x#/body/big"}, "l":[{"$ref":"x#/body/o"},-0]}'
  const answer = '{"body":{"big":18446744073709551615,"o":{"__proto__":"\\u2028"}},"status":200}'
  const made = withValues(text, ({ pointer }) => valueAt(answer, pointer) ?? 'null')
  expect(made).toBe(
    '{"n":9007199254740993, "s":"\\u00e9\\"", "r":18446744073709551615, "l":[{"__proto__":"\\u2028"},-0]}',
  )
})

test.each([
  [['body', 'list', '1'], '"b"'],
  [['body', 'list', '01'], undefined],
  [['body', 'list', '-1'], undefined],
  [['body', 'nothing'], undefined],
  [['body', 'toString'], undefined],
  [['body', '__proto__'], undefined],
  [['body', 'list', '0', 'x'], undefined],
  [['status'], '201'],
])('the pointer %j leads to %s', (pointer, value) => {
  expect(valueAt('{"body":{"list":["a","b"]},"status":201}', pointer)).toBe(value)
})

test.each([
  ['/posts/{a#/body/id}', ['/posts/', { id: 'a', pointer: ['body', 'id'] }, '']],
  ['/posts/{a#/body/id}?_fields=id', ['/posts/', { id: 'a', pointer: ['body', 'id'] }, '?_fields=id']],
  ['/posts/{x}', ['/posts/', '{x}', '']],
  ['/posts/a{a#/body/id}', undefined],
  ['/posts/{a#/body/id}b', undefined],
  ['/posts/{a#/body/id}{a#/body/id}', undefined],
  ['/posts?include={a#/body/id}', undefined],
  ['/posts?x=/{a#/body/id}', undefined],
])('the path %s is cut into %j', (path, template) => {
  expect(pathTemplate(path)).toEqual(template)
})

test.each([
  ['5', '5'],
  ['18446744073709551615', '18446744073709551615'],
  ['"a b/c?d#e%"', 'a%20b%2Fc%3Fd%23e%25'],
  ['".."', undefined],
  ['""', undefined],
  ['1.5', undefined],
  ['1e9', undefined],
  ['true', undefined],
  ['null', undefined],
  ['{"a":1}', undefined],
  ['"\\ud800"', undefined],
  [JSON.stringify('x'.repeat(201)), undefined],
])('the value %s in a path is %s', (value, segment) => {
  expect(pathSegment(value)).toBe(segment)
})

test.each([
  ['a value that is not there', '{"a":{"$ref":"x#/body/none"}}', '{"body":{},"status":200}'],
  ['too long a value', '{"a":{"$ref":"x#/body"}}', `{"body":"${'y'.repeat(65_536)}","status":200}`],
  [
    'too deep a value',
    '{"a":{"$ref":"x#/body"}}',
    `{"body":${'['.repeat(40)}${']'.repeat(40)},"status":200}`,
  ],
  [
    'too much in all',
    `[${Array(20).fill('{"$ref":"x#/body"}').join(',')}]`,
    `{"body":"${'y'.repeat(9_000)}"}`,
  ],
])('%s leaves an item unresolved', (_, body, answer) => {
  const template = { path: ['/posts'], body, references: [] }
  expect(resolveItem(template, ({ pointer }) => valueAt(answer, pointer), 100_000)).toBeUndefined()
})

test.each([
  ['{"a":{"b":1},"a":{"b":2}}', ['a', 'b'], '2'],
  ['{"a":{"b":1},"a":{}}', ['a', 'b'], undefined],
  ['{"a":{"b":1},"a":"{}"}', ['a', 'b'], undefined],
  ['{"a":[{"b":1},{"b":2}],"a":[{"b":3}]}', ['a', '1', 'b'], undefined],
  ['{"a":[{"b":1},{"b":2}],"a":[{"b":3}]}', ['a', '0', 'b'], '3'],
])('of a repeated member the last one counts: %s', (text, pointer, value) => {
  expect(valueAt(text, pointer)).toBe(value)
})

test('many pointers into one text are found at once, those below each other too', () => {
  const found = valuesAt('{"body":[{"id":5,"title":{"raw":"a"}},{"id":6}],"status":200}', [
    ['body', '1', 'id'],
    ['body', '0', 'title'],
    ['body', '0', 'title', 'raw'],
    ['status'],
  ])
  expect(found(['body', '1', 'id'])).toBe('6')
  expect(found(['body', '0', 'title'])).toBe('{"raw":"a"}')
  expect(found(['body', '0', 'title', 'raw'])).toBe('"a"')
  expect(found(['status'])).toBe('200')
})

/** A body of a megabyte with fifty lists in each other and a reference at the end of the innermost one. */
const nestedBody = `${'['.repeat(50)}${'{"a":""},'.repeat(100_000)}{"$ref":"a#/body"}${']'.repeat(50)}`

test.each<[string, () => unknown, number]>([
  ['looking for a reference below fifty lists', () => referencesIn(nestedBody), 100],
  ['replacing a reference below fifty lists', () => withValues(nestedBody, () => '1'), 100],
  ['looking for a reference in empty objects', () => referencesIn(`[${'{},'.repeat(300_000)}{}]`), 100],
  [
    'looking for a reference in objects that only begin like one',
    () => referencesIn(`[${'{"$ref":"a","$ref":"b","c":{}},'.repeat(30_000)}{}]`),
    100,
  ],
  ['measuring the depth of a value', () => nestingDepth(nestedBody), 50],
  [
    'looking for eight hundred values in an answer of a megabyte',
    () => {
      const text = `{"body":[${Array.from({ length: 100 }, (_, id) => `{"id":${id},"text":"${'x\\"'.repeat(3_000)}"}`)}]}`
      const pointers = Array.from({ length: 800 }, (_, at) => ['body', String(at % 100), `id${at}`])
      const found = valuesAt(text, pointers)
      return pointers.map(found)
    },
    150,
  ],
  [
    'looking for a place in a list of a million numbers',
    () => valuesAt(`{"body":[${'0,'.repeat(1_000_000)}0]}`, [['body', '999999']])(['body', '999999']),
    1_200,
  ],
  ['reading a path of a thousand references', () => pathTemplate('/{a#/body}'.repeat(1_000)), 20],
])('%s reads the text once, however it is nested', (_, run, ms) => {
  expect(cost(run, ms)).toBeLessThan(ms)
})
