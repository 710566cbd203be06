import { describe, expect, test } from 'vitest'
import type { Arguments, Row } from '../../../../src/service/row.ts'
import { siteValidator } from '../arguments/support.ts'

const list = { type: 'array', items: { type: 'integer' } } as const

/** A route that the contract does not know: its arguments mean what their schema says and no more. */
const canonical = (args: Arguments, query: string): string => {
  const endpoint = { methods: ['GET'], arguments: args } as const
  const row: Row = {
    id: 'shop.items',
    template: '/shop/v1/items',
    pattern: '/shop/v1/items',
    namespace: 'shop/v1',
    collection: 'items',
    kind: 'collection',
    handledBy: 'upstream',
    endpoints: [endpoint],
  }
  const response = siteValidator.validate({
    method: 'GET',
    row,
    endpoint,
    pathParameters: {},
    query,
    contentType: undefined,
    content: undefined,
  })
  return response.kind === 'valid' ? response.query : `! ${response.code}`
}

describe('arguments of a route that the contract does not list', () => {
  test.each<[string, Arguments, string, string]>([
    ['a list may be a sequence', { ids: list }, 'ids[]=3&ids[]=1&ids[]=3', 'ids=3,1,3'],
    ['even include, when no orderby can say so', { include: list }, 'include=3,1', 'include=3,1'],
    [
      'include is a set where orderby can',
      { include: list, orderby: { type: 'string', enum: ['id', 'include'], default: 'id' } },
      'include=3,1',
      'include=1,3',
    ],
    [
      'a date keeps its zone',
      { day: { type: 'string', format: 'date-time' } },
      'day=2026-02-01T00:00:00%2B02:00',
      'day=2026-02-01T00:00:00%2B02:00',
    ],
    [
      'what may be text is never written with commas',
      { x: { type: ['string', 'array'] } },
      'x[]=a&x[]=b',
      'x%5B%5D=a&x%5B%5D=b',
    ],
    ['and text with commas is no list', { x: { type: ['string', 'array'] } }, 'x=a,b', 'x=a,b'],
    ['the number that may be text', { x: { type: ['integer', 'string'] } }, 'x=05', 'x=5'],
    ['the text that may be a number', { x: { type: ['string', 'integer'] } }, 'x=05', 'x=05'],
    [
      'an object',
      { x: { type: 'object', properties: { n: { type: 'integer' } } } },
      'x[n]=05&x[m]=05',
      'x%5Bm%5D=05&x%5Bn%5D=5',
    ],
    ['an empty object', { x: { type: 'object' } }, 'x=', 'x='],
    ['a list of lists', { x: { type: 'array', items: list } }, 'x[0]=1,2&x[1]=3', 'x%5B0%5D=1,2&x%5B1%5D=3'],
    [
      'a list of objects',
      { x: { type: 'array', items: { type: 'object' } } },
      'x[3][b]=1&x[5][a]=2',
      'x%5B0%5D%5Bb%5D=1&x%5B1%5D%5Ba%5D=2',
    ],
    ['a number', { x: { type: 'number' } }, 'x=%201.50', 'x=1.5'],
    [
      'a status that is no status of a post',
      { status: { type: 'array', items: { type: 'string', enum: ['Open', 'Closed'] } } },
      'status=Open',
      'status=Open',
    ],
    ['a name that has to be escaped', { 'a-b!': { type: 'string' } }, 'a-b!=1', 'a-b%21=1'],
    ['a type that does not exist', { x: { type: 'mixed' as 'string' } }, 'x=1', 'x=1'],
  ])('%s', (_, args, query, expected) => {
    const once = canonical(args, query)
    expect(canonical(args, once)).toBe(once)
    expect(once).toBe(expected)
  })
})
