import type { LookupFunction } from 'node:net'
import { expect, test } from 'vitest'
import { sharedLookup } from '../../src/system-lookup.ts'

type Found = Parameters<LookupFunction>[2]
type Reply = Parameters<Found>

/** A lookup whose answers the test gives, with the result of each caller. */
const scripted = () => {
  const asked: { readonly name: string; readonly response: Found }[] = []
  const told: Reply[] = []
  const look = sharedLookup((name, _options, response) => void asked.push({ name, response }))
  const find = (name: string, options = {}): void =>
    look(name, options, (...response) => void told.push(response))
  return { asked, told, find }
}

test('simultaneous lookups of one name are shared; other or later ones are not', () => {
  const { asked, told, find } = scripted()
  find('one.test')
  find('one.test')
  find('one.test', { all: true })
  find('other.test')
  expect(asked.map(({ name }) => name)).toEqual(['one.test', 'one.test', 'other.test'])
  asked[0]?.response(null, '127.0.0.1', 4)
  expect(told).toEqual([
    [null, '127.0.0.1', 4],
    [null, '127.0.0.1', 4],
  ])
  find('one.test')
  expect(asked).toHaveLength(4)
})

test('a lookup that throws fails for each caller with its own error', () => {
  let calls = 0
  const look = sharedLookup(() => {
    calls += 1
    throw new Error('no resolver')
  })
  const told: unknown[] = []
  for (let turn = 0; turn < 2; turn++) look('one.test', {}, (error) => void told.push(error?.message))
  expect({ calls, told }).toEqual({ calls: 2, told: ['no resolver', 'no resolver'] })
})

test('a caller that throws at its response is not called again', () => {
  let times = 0
  const look = sharedLookup((_name, _options, found) => found(null, '127.0.0.1', 4))
  const fails: Found = () => {
    times += 1
    throw new Error('of the caller')
  }
  expect(() => look('one.test', {}, fails)).toThrow('of the caller')
  expect(times).toBe(1)
})
