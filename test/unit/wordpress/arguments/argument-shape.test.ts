import { setFlagsFromString } from 'node:v8'
import { expect, test } from 'vitest'
import { ask } from './support.ts'

setFlagsFromString('--allow-natives-syntax')
const haveSameClass = new Function('one', 'other', 'return %HaveSameMap(one, other)') as (
  one: object,
  other: object,
) => boolean

const argumentsOf = (offset: number): object => {
  const validation = ask({ query: `per_page=8&offset=${offset}` })
  return validation.kind === 'valid' ? validation.arguments : {}
}

test('the arguments of all requests with the same parameters have one hidden class', () => {
  // V8 widens the types of the members while it sees the first values.
  for (let offset = 1; offset < 20; offset += 1) argumentsOf(offset)
  expect(argumentsOf(20)).toMatchObject({ per_page: 8, offset: 20 })
  expect(haveSameClass(argumentsOf(21), argumentsOf(22))).toBe(true)
})
