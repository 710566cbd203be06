import { describe, expect, test } from 'vitest'
import { Redaction } from '../../../src/http/redaction.ts'

const redaction = new Redaction(['hush', 'clé', 'userPin'])

test.each([
  ['/x', '/x'],
  ['/x?page=2', '/x?page=2'],
  ['/x?token=a&page=2', '/x?token=[redacted]&page=2'],
  ['/x?access_token=a', '/x?access_token=[redacted]'],
  ['/x?Access-Token=a', '/x?Access-Token=[redacted]'],
  ['/x?%74oken=a', '/x?%74oken=[redacted]'],
  ['/x?%2574oken=a', '/x?%2574oken=[redacted]'],
  ['/x?_wpnonce=a', '/x?_wpnonce=[redacted]'],
  ['/x?X-Amz-Signature=a&X-Amz-Date=b', '/x?X-Amz-Signature=[redacted]&X-Amz-Date=b'],
  ['/x?token=', '/x?token=[redacted]'],
  ['/x?token', '/x?token'],
  ['/x?%zz=a', '/x?%zz=[redacted]'],
  ['/x?a=b=c?token=d', '/x?a=[redacted]'],
  ['/x?a=1;token=d', '/x?a=[redacted]'],
  ['/x?next=%2Fb%3Ftoken%3Dd', '/x?next=[redacted]'],
  ['/x?next=%2Fb%3Ftoken%3Dd%zz', '/x?next=[redacted]'],
  ['/x?next=%2Fb%3Fpage%3D2', '/x?next=%2Fb%3Fpage%3D2'],
  ['/x;jsessionid=a/b;v=1', '/x;jsessionid=[redacted]/b;v=1'],
  ['http://user:password@host/x?page=2', 'http://[redacted]@host/x?page=2'],
  ['/@user/x?to=a@b', '/@user/x?to=a@b'],
])('%s is shown as %s', (target, shown) => {
  expect(redaction.target(target)).toBe(shown)
  expect(redaction.isShown(target)).toBe(target === shown)
})

describe('a declared name', () => {
  test.each([
    'hush',
    'HUSH',
    '%68ush',
    'hush[]',
    'hush[a]',
    'hush%5B%5D',
    'hush%00a',
    'cl%C3%A9',
    'userpin',
    'user.pin',
  ])('is hidden as %s', (name) => {
    expect(redaction.target(`/x?a=1&${name}=planted`)).toBe(`/x?a=1&${name}=[redacted]`)
  })

  test.each(['hus', 'hushed', 'cl', 'a'])('leaves %s', (name) => {
    expect(redaction.isShown(`/x?${name}=1`)).toBe(true)
  })

  test('is hidden in a tag that has a target at its end, and is declared for good', () => {
    const later = new Redaction()
    expect(later.isShown('4:open9:/x?hush=a')).toBe(true)
    later.declare(['hush'])
    later.declare([])
    expect(later.target('4:open9:/x?hush=a')).toBe('4:open9:/x?hush=[redacted]')
  })
})

describe('a value', () => {
  test.each([
    ['JSON', '{"a":{"password":"planted"}}', false],
    ['JSON with a number', '{"pin":1234}', false],
    ['JSON with an escaped name', '{"\\u0068ush":"planted"}', false],
    ['a list in JSON', '{"hush":["planted"]}', false],
    ['an argument', '{ user(token: "planted") { id } }', false],
    [
      'a variable of a document',
      'query ($token: String!, $hush: [Int]) { user(token: $token) { token } }',
      true,
    ],
    ['an alias', '{ token: id, hush: name }', true],
    ['a country', '{ country(code: "DE") { name } }', true],
    ['a key of a pair', '{"key":"color","value":"red"}', true],
    ['a time', '12:30', true],
  ])('with %s', (_, value, isShown) => {
    expect(redaction.isShown(`/x?a=${encodeURIComponent(value)}`)).toBe(isShown)
  })
})
