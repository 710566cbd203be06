import { expect, test } from 'vitest'
import { isFacts } from '../../../src/cache/shared-tier.ts'

const facts = {
  status: 200,
  headers: ['Content-Type', 'text/plain', 'X-Name', 'caf\u00e9'],
  ownTag: true,
}

test.each([
  ['as they are written', facts, true],
  ['with the upstream\u2019s own tag', { ...facts, ownTag: false }, true],
  ['nothing', null, false],
  ['a text', 'facts', false],
  ['no status', { ...facts, status: undefined }, false],
  ['a status that is a text', { ...facts, status: '200' }, false],
  ['a status that is no final one', { ...facts, status: 100 }, false],
  ['no fields', { ...facts, headers: null }, false],
  ['a name without a value', { ...facts, headers: ['Content-Type'] }, false],
  ['a name that is none', { ...facts, headers: ['Content Type', 'text/plain'] }, false],
  ['a value that ends the line', { ...facts, headers: ['A', 'b\r\nSet-Cookie: c'] }, false],
  ['a value beyond Latin-1', { ...facts, headers: ['A', '\u20ac'] }, false],
  ['a value that is a number', { ...facts, headers: ['A', 1] }, false],
  ['a word for yes', { ...facts, ownTag: 'yes' }, false],
])('facts of an entry of the shared tier are checked: %s', (_, value, is) => {
  expect(isFacts(value)).toBe(is)
})
