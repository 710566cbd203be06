import { describe, expect, test } from 'vitest'
import { Redaction } from '../../../src/http/redaction.ts'
import { costBeside } from '../../support/cost.ts'

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
  ['/x?a=1;b=2', '/x?a=1;b=2'],
  ['/x?a;token=d', '/x?a;token=[redacted]'],
  ['/x?a%26token=d', '/x?a%26token=[redacted]'],
  ['/x?a?token=d', '/x?a?token=[redacted]'],
  ['/x?next=https%3A%2F%2Fmaps%2Fapi%3Fkey%3Dd', '/x?next=[redacted]'],
  ['/x?next=%2Fb%3Fcode%3Dd', '/x?next=[redacted]'],
  ['/x?next=%2Fb%3F%ff', '/x?next=%2Fb%3F%ff'],
  ['/x?%ff=a', '/x?%ff=[redacted]'],
  ['/x?%7B%22token%22%3A%22a%22%7D', '/x?[redacted]'],
  ['/x?%7B%22token%22%3A%22a%3D%22%7D=', '/x?[redacted]'],
  ['/x?{"token":"a="}', '/x?[redacted]'],
  ['/x?u=https://user:password@host/x&page=2', '/x?u=[redacted]&page=2'],
  ['/x?u=https%3A%2F%2Fuser%3Apassword%40host', '/x?u=[redacted]'],
  ['/x?u=https://host/@a', '/x?u=https://host/@a'],
  ['/x/https://user:password@host/x', '/x/https://[redacted]@host/x'],
  ['/x/https:%2F%2Fuser:password%40host/x', '/x/https:%2F%2F[redacted]%40host/x'],
  ['/x%3Bjsessionid=a/b', '/x%3Bjsessionid=[redacted]/b'],
  ['/x%253Bjsessionid%253Da/b', '/x%253Bjsessionid%253D[redacted]/b'],
  ['/x%3Ftoken%3Da', '/x%3Ftoken%3D[redacted]'],
  ['/x%3Bv=1', '/x%3Bv=1'],
  ['/x;jsessionid=a/b;v=1', '/x;jsessionid=[redacted]/b;v=1'],
  ['http://user:password@host/x?page=2', 'http://[redacted]@host/x?page=2'],
  ['/@user/x?to=a@b', '/@user/x?to=a@b'],
])('%s is shown as %s', (target, shown) => {
  expect(redaction.target(target)).toBe(shown)
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
    'x[hush]',
    'filter%5Bhush%5D',
    'x[a][hush][]',
    'x.hush',
    'CL%C3%89',
  ])('is hidden as %s', (name) => {
    expect(redaction.target(`/x?a=1&${name}=planted`)).toBe(`/x?a=1&${name}=[redacted]`)
  })

  test.each(['hus', 'hushed', 'cl', 'a'])('leaves %s', (name) => {
    expect(redaction.target(`/x?${name}=1`)).toBe(`/x?${name}=1`)
  })

  test('is hidden in a tag that has a target at its end, and is declared for good', () => {
    const later = new Redaction()
    expect(later.target('4:open9:/x?hush=a')).toBe('4:open9:/x?hush=a')
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
    ['JSON with a truth', '{"hush":true}', false],
    ['JSON with another name', '{"cl\u00e9":true}', false],
    ['JSON in JSON', '{"a":"{\\"hush\\":\\"planted\\"}"}', false],
    ['a word as an argument', '{a(hush:PLANTED)}', false],
    ['a default of a variable', 'query ($hush: String! = "planted") { a }', false],
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
    ['a key that is a truth', '{"key":true}', true],
    ['a time', '12:30', true],
  ])('with %s', (_, value, isShown) => {
    const target = `/x?a=${encodeURIComponent(value)}`
    expect(redaction.target(target)).toBe(isShown ? target : '/x?a=[redacted]')
  })
})

test('a declared name is hidden in a pair too, and nobody declares an empty one', () => {
  const keyed = new Redaction(['key', '[]'])
  expect(keyed.target('/x?a={"key":"color"}')).toBe('/x?a=[redacted]')
  expect(keyed.target('/x?b[]=1')).toBe('/x?b[]=1')
})

describe('the beginning of a long text', () => {
  test.each([
    ['/x?a=1', '/x?a=1'],
    [`/x?token=${'a'.repeat(100)}&page=2`, '/x?token=[redacted]...'],
    [`/x?page=2&u=https://user:${'a'.repeat(100)}@host`, '/x?page=2&u=[redacted]...'],
    [`/x/https://user:${'a'.repeat(100)}@host`, '/x/https://[redacted]...'],
    [`/x?page=2&a=${'b'.repeat(100)}`, `/x?page=2&a=${'b'.repeat(28)}...`],
  ])('of %s is %s', (text, shown) => {
    expect(redaction.beginning(text, 20)).toBe(shown)
  })

  test('never shows more than the whole', () => {
    const parts = ['a=1', 'hush=planted', 'u=https://b:planted@c', 'v={"hush":"planted"}', ';hush=planted']
    for (const first of parts)
      for (const second of parts)
        for (let max = 1; max < 40; max += 1)
          expect(redaction.beginning(`/x?${first}&${second}&z=${'z'.repeat(100)}`, max)).not.toContain('pla')
  })

  test.each(['a=%&', '%=&', 'a=%25&', '%C3%A9=1&', 'a":', '(a:', 'a;b=', '//@'])(
    'costs little for %s',
    (piece) => {
      const query = piece.repeat(Math.ceil(8192 / piece.length))
      const reading = () => new URLSearchParams(query)
      expect(costBeside(() => redaction.beginning(`/x?${query}`, 512), reading, 15)).toBeLessThan(15)
    },
  )
})
