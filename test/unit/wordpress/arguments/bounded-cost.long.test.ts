import { describe, expect, test } from 'vitest'
import type { ArgumentSchema } from '../../../../src/service/row.ts'
import { checkValue } from '../../../../src/wordpress/arguments/check-value.ts'
import { cost, costBeside } from '../../../support/cost.ts'
import { plantRequests } from '../../../support/plants.ts'
import { type Asked, ask } from './support.ts'

const megabyte = 1 << 20
const repeated = (text: string, length = megabyte) => text.repeat(length / text.length)

const write = (content: string): Asked => ({ method: 'POST', content })

const form = (content: string | Buffer): Asked => ({
  method: 'POST',
  content,
  contentType: 'application/x-www-form-urlencoded',
})

describe('a form of a million bytes does not block the event loop', () => {
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
    // By patterns and functions for each character these take 200 to 600 ms.
    expect(cost(() => ask(asked), 150)).toBeLessThan(150)
  })
})

const list = (element: string): string => `[${repeated(`${element},`).slice(0, -1)}]`

const members = (value: string, count = 90_000): string =>
  `{${Array.from({ length: count }, (_, i) => `"k${i}":${value}`).join()}}`

const writeTo = (row: string, content: string): Asked => ({ row, ...write(content) })

const manyMembers = members('1')

/**
 * To parse a content, and a number of objects of 90,000 members: 70 ms each where the bounds were found, three times that where memory
 * is slow.
 */
const parsing = (content: string, objects: number) => (): void => {
  JSON.parse(content)
  for (let at = 0; at < objects; at += 1) JSON.parse(manyMembers)
}

describe('a megabyte of JSON takes little more than to parse it', () => {
  test.each<[description: string, row: string, content: string]>([
    ['a list of numbers', 'posts.collection', `{"categories":${list('1')}}`],
    ['terms in one text', 'posts.collection', `{"categories":"${repeated('1,')}"}`],
    ['a list where an object is meant', 'templates.autosaves', `{"title":${list('1')}}`],
    ['an object of unknown members', 'templates.autosaves', `{"title":${members('[]')}}`],
    ['unknown members beside known ones', 'global-styles.item', `{"styles":${members('1')}}`],
    ['undeclared parameters', 'posts.collection', members('1')],
    ['one surrogate among lists', 'posts.collection', `{"x":["\\ud83d\\ude00",${repeated('[],')}1]}`],
    ['thousands of batch items', 'batch', `{"requests":${list('{"path":""}')}}`],
  ])('%s', (_, row, content) => {
    const asked = { ...writeTo(row, content), path: { id: '1', parent: '1' } }
    // With copies, texts and needless checks for each element these take 150 to 550 ms more.
    expect(costBeside(() => ask(asked), parsing(content, 2), 1)).toBeLessThan(1)
  })

  test('objects that fit one of several forms', () => {
    const content = `{"src":"a","modifiers":${list('{"type":"rotate","args":{"angle":1}}')}}`
    const asked = { ...writeTo('media.edit', content), path: { id: '1' } }
    // With a text for each form that does not fit it takes 1400 ms.
    expect(costBeside(() => ask(asked), parsing(content, 6), 1)).toBeLessThan(1)
  })

  test('a plant with unknown members', async () => {
    const content = members('1')
    const { find, validator } = await plantRequests({
      limits: { queryParameters: 8, jsonDepth: 64 },
      limitParameter: 'limit',
      unknownParameters: 'strip',
      trackingParameters: [],
    })
    const found = find('POST', '/plants')
    if (found.kind !== 'found') throw new Error('no such route')
    const posted = {
      ...found,
      method: 'POST',
      query: '',
      contentType: 'application/json',
      content: Buffer.from(content),
    }
    expect(costBeside(() => validator.validate(posted), parsing(content, 2), 1)).toBeLessThan(1)
  })
})

/** Counts the members that are read. */
const watched = (object: Readonly<Record<string, unknown>>) => {
  let looks = 0
  const value = new Proxy(object, {
    get: (target, name) => {
      looks += 1
      return target[String(name)]
    },
  })
  return { value, looks: () => looks }
}

test.each<[string, ArgumentSchema]>([
  [
    'every member has a schema',
    { type: 'object', maxProperties: 10, additionalProperties: { type: 'integer' } },
  ],
  [
    'some members have a schema',
    { type: 'object', maxProperties: 10, properties: { k1: {}, k2: {}, k50: {} } },
  ],
])('of far too many members only some are checked: %s', (_, schema) => {
  const { value, looks } = watched(JSON.parse(members('1')))
  expect(checkValue(value, schema, 'x')?.code).toBe('rest_too_many_properties')
  expect(looks()).toBeLessThanOrEqual(40)
})

describe('no request of permitted size takes long', () => {
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
    // Generous: the quadratic forms of these take minutes.
    expect(cost(() => ask(asked), 1500, 3)).toBeLessThan(1500)
  })
})
