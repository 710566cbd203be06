import { describe, expect, test } from 'vitest'
import {
  foldPhpName,
  PhpArray,
  type PhpValue,
  parsePhpQuery,
} from '../../../../src/wordpress/arguments/php-query.ts'

const plain = (value: PhpValue): unknown =>
  value instanceof PhpArray ? [...value].map(([key, member]) => [key, plain(member)]) : value

const parse = (text: string): unknown => {
  const parsed = parsePhpQuery(text, 100, text.length)
  return parsed.kind === 'read'
    ? Object.fromEntries([...parsed.parameters].map(([k, v]) => [k, plain(v)]))
    : parsed.kind
}

// Right column: what PHP 8.2's parse_str makes of it.
describe('names and brackets are decoded as in PHP', () => {
  test.each([
    ['a dot', 'a.b=1', { a_b: '1' }],
    ['a space', 'a%20b=1', { a_b: '1' }],
    ['a plus', 'a+b=1', { a_b: '1' }],
    ['a plus at the end', 'a+=1', { a_: '1' }],
    ['a leading space', '%20a=1', { a: '1' }],
    ['an unclosed bracket', 'a[b=1', { a_b: '1' }],
    ['an unclosed bracket and a dot', 'a[b.c=1', { a_b_c: '1' }],
    ['two unclosed brackets', 'a[b[c=1', { a_b_c: '1' }],
    ['an encoded unclosed bracket', 'a%5B=5', { a_: '5' }],
    ['a second bracket unclosed', 'a[x][y=1', { a: [['x', '1']] }],
    ['an encoded pair of brackets', 'a%5Bx%5D=1', { a: [['x', '1']] }],
    ['a half encoded pair', 'a[b%5D=3', { a: [['b', '3']] }],
    ['text behind a bracket', 'a[x]y=1', { a: [['x', '1']] }],
    ['brackets behind text behind a bracket', 'a[x]y[z]=1', { a: [['x', '1']] }],
    ['a bracket in a bracket', 'a[[b]]=1', { a: [['[b', '1']] }],
    ['a blank index', 'a[ ]=1', { a: [['0', '1']] }],
    ['an index with a leading blank', 'a[ x]=1', { a: [[' x', '1']] }],
    ['an index with a dot', 'a.b[c.d]=1', { a_b: [['c.d', '1']] }],
    ['a NUL in the name', 'a%00x=1', { a: '1' }],
    ['a NUL in an index', 'a[x%00y]=1', { a_x: '1' }],
    ['no name', '=1', {}],
    ['a bracket instead of a name', '[a]=1', {}],
    ['no value', 'a', { a: '' }],
    ['a second equals sign', 'a==b', { a: '=b' }],
    ['a semicolon', 'a;b=1', { 'a;b': '1' }],
    ['empty pairs', '&&a=1&&', { a: '1' }],
    ['a broken escape', 'a=%zz&b=%', { a: '%zz', b: '%' }],
    ['a broken escape in the name', 'a%4=1', { 'a%4': '1' }],
    ['an escaped letter', '%70er_page=1', { per_page: '1' }],
    ['a doubly escaped letter', '%2570=1', { '%70': '1' }],
    ['the last of equal names', 'a=1&a=2', { a: '2' }],
    ['the last of names that fold alike', 'per_page=5&per.page=9', { per_page: '9' }],
    ['a list, then a scalar', 'a[]=1&a=2', { a: '2' }],
    ['a scalar, then a list', 'a=1&a[]=2', { a: [['0', '2']] }],
    ['an index set twice', 'a[b]=1&a[b]=2', { a: [['b', '2']] }],
    ['an index that turns into a list', 'a[b]=1&a[b][c]=2', { a: [['b', [['c', '2']]]] }],
    [
      'appending behind an index',
      'a[]=1&a[5]=3&a[]=4',
      {
        a: [
          ['0', '1'],
          ['5', '3'],
          ['6', '4'],
        ],
      },
    ],
    [
      'appending behind a text index',
      'a[x]=1&a[]=4',
      {
        a: [
          ['x', '1'],
          ['0', '4'],
        ],
      },
    ],
    [
      'appending behind 01, which is text',
      'a[01]=1&a[]=4',
      {
        a: [
          ['01', '1'],
          ['0', '4'],
        ],
      },
    ],
    [
      'order of indexes',
      'a[2]=x&a[0]=y',
      {
        a: [
          ['2', 'x'],
          ['0', 'y'],
        ],
      },
    ],
    [
      'lists of lists',
      'a[][b]=1&a[][b]=2',
      {
        a: [
          ['0', [['b', '1']]],
          ['1', [['b', '2']]],
        ],
      },
    ],
    ['UTF-8', 'a=%C3%A9&b=é', { a: 'é', b: 'é' }],
  ])('%s: %s', (_, text, expected) => {
    expect(parse(text)).toEqual(expected)
  })

  test.each([
    ['bytes that are not UTF-8', 'a=%FF'],
    ['an overlong form', 'a=%C0%AF'],
    ['an encoded surrogate', 'a=%ED%A0%80'],
    ['half a surrogate pair', 'a=\ud800'],
    ['an index beyond what can be counted on from', 'a[9007199254740991]=1&a[]=2'],
    ['deeper nesting than any argument has', `a${'[x]'.repeat(17)}=1`],
  ])('%s make a value unreadable', (_, text) => {
    expect(typeof (parse(text) as { a: unknown }).a).toBe('symbol')
  })

  test('__proto__ and constructor are ordinary names', () => {
    const parsed = parse('__proto__[polluted]=1&constructor[prototype][polluted]=1&a[__proto__][polluted]=1')
    expect(Object.hasOwn(parsed as object, 'constructor')).toBe(true)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  test('more parameters than the limit are refused, not dropped', () => {
    expect(parse(Array.from({ length: 100 }, (_, i) => `p${i}=1`).join('&'))).toBeTypeOf('object')
    expect(parse(Array.from({ length: 101 }, (_, i) => `p${i}=1`).join('&'))).toBe('too-many-parameters')
  })
})

// Overrides and secrets are looked for under the name alone: it must be the one under which PHP will find them.
test.each([
  'rest.route',
  ' rest route',
  'rest[route',
  'rest[route.x',
  'a[b[c',
  '_method[]',
  '_method[x][y',
  'status\0x',
  'context[',
  '[a]',
  '',
  '\t_method',
])('%j has one name in all readers', (name) => {
  const parsed = parsePhpQuery(`${encodeURIComponent(name)}=1`, 10, 1000)
  const names = parsed.kind === 'read' ? [...parsed.parameters.keys()] : []
  expect(names).toEqual(foldPhpName(name) === '' ? [] : [foldPhpName(name)])
})
