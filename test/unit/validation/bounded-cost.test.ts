import { describe, expect, test } from 'vitest'
import { type Asked, ask } from './support.ts'

const megabyte = 1 << 20
const repeated = (text: string, length = megabyte) => text.repeat(length / text.length)

const write = (content: string): Asked => ({ method: 'POST', content })

const form = (content: string | Buffer): Asked => ({
  method: 'POST',
  content,
  contentType: 'application/x-www-form-urlencoded',
})

describe('a form of a million bytes holds nobody up', () => {
  test.each<[string, Asked]>([
    ['dots in a name', form(`${repeated('.')}=1`)],
    ['dots in many names', form(repeated(`${'.'.repeat(1022)}=&`, 1 << 19))],
    ['bytes beyond ASCII', form(Buffer.alloc(megabyte, 0xff))],
    [
      'bytes beyond ASCII in a value',
      form(Buffer.concat([Buffer.from('title='), Buffer.alloc(megabyte, 0xff)])),
    ],
    ['plus signs', form(`title=${repeated('+')}`)],
    ['nothing but separators', form(repeated('&'))],
  ])('%s', (_, asked) => {
    ask(asked)
    const before = process.cpuUsage()
    ask(asked)
    // By patterns and functions for each character these take 200 to 600 ms.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(150)
  })
})

describe('no request of legal size takes long', () => {
  test.each<[string, Asked]>([
    ['a million digits', write(`{"author":"${repeated('1')}"}`)],
    ['a million zeros and a fraction', write(`{"author":"${repeated('0')}.0"}`)],
    ['a million zeros and a letter', write(`{"author":"${repeated('0')}x"}`)],
    ['a million blanks', write(`{"author":"${repeated(' ')}x"}`)],
    ['a million blanks as a boolean', write(`{"sticky":"${repeated(' ')}"}`)],
    ['a fraction of a million digits', write(`{"date":"2026-01-01T00:00:00.${repeated('1')}x"}`)],
    ['half a million terms', write(`{"categories":"${repeated('1,')}"}`)],
    ['half a million commas', write(`{"categories":"${repeated(', ')}"}`)],
    [
      'a hundred thousand members',
      write(`{${Array.from({ length: 100_000 }, (_, i) => `"k${i}":1`).join()}}`),
    ],
    ['a million open brackets', write(repeated('['))],
    ['surrogates', write(`{"x":"${repeated('\\ud83d')}"}`)],
    [
      'a form of brackets',
      { ...write(`a${repeated('[')}=1`), contentType: 'application/x-www-form-urlencoded' },
    ],
    [
      'a form of escapes',
      { ...write(`a=${repeated('%')}`), contentType: 'application/x-www-form-urlencoded' },
    ],
    ['thousands of fields', { query: `_fields=${Array.from({ length: 2000 }, (_, i) => `a.${i}`).join()}` }],
    ['nested brackets', { query: `a${'[x]'.repeat(2600)}=1` }],
    ['percent signs', { query: `search=${'%'.repeat(8000)}` }],
  ])('%s', (_, asked) => {
    const before = process.cpuUsage()
    ask(asked)
    // Generous: the quadratic forms of these take minutes.
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(1500)
  })
})
