import { expect, test } from 'vitest'
import {
  isDeeperThan,
  parseReference,
  referencesIn,
  valueAt,
  withValues,
} from '../../../src/batch/json-references.ts'
import { pathSegment, pathTemplate } from '../../../src/batch/path-references.ts'
import { resolveItem } from '../../../src/batch/resolve-item.ts'

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
  ['{"a":{"$ref":"nothing"}}', undefined],
  [`[${Array(33).fill('{"$ref":"x#/body"}').join(',')}]`, undefined],
])('finds the references of %s', (text, ids) => {
  expect(referencesIn(text)?.map(({ id }) => id)).toEqual(ids)
})

test('a value takes the place of a reference as it stands, and everything else stays as it was', () => {
  const text =
    '{"n":9007199254740993, "s":"\\u00e9\\"", "r":{"$ref":"x#/body/big"}, "l":[{"$ref":"x#/body/o"},-0]}'
  const answer = '{"body":{"big":18446744073709551615,"o":{"__proto__":"\\u2028"}},"status":200}'
  const made = withValues(text, ({ pointer }) => valueAt(answer, pointer) ?? 'null')
  expect(made).toBe(
    '{"n":9007199254740993,"s":"\\u00e9\\"","r":18446744073709551615,"l":[{"__proto__":"\\u2028"},-0]}',
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
  expect(resolveItem({ path: ['/posts'], body }, () => answer, 100_000)).toEqual({ kind: 'unresolved' })
})

test('depth is counted in objects and lists alike', () => {
  expect(isDeeperThan('[{"a":[]}]', 3)).toBe(false)
  expect(isDeeperThan('[{"a":[]}]', 2)).toBe(true)
})
