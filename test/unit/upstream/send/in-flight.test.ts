import { expect, test } from 'vitest'
import { type Abortable, RequestsInFlight } from '../../../../src/upstream/send/in-flight.ts'

const entered = (all: RequestsInFlight<Abortable>, aborted: string[], ...names: string[]): Abortable[] =>
  names.map((name) => {
    const one: Abortable = {
      index: -1,
      abort: () => {
        aborted.push(name)
        all.remove(one)
      },
    }
    all.add(one)
    return one
  })

test('a request that has been removed is not aborted with the others, nor is the one that took over its position forgotten', () => {
  const all = new RequestsInFlight<Abortable>()
  const aborted: string[] = []
  const [a, , c] = entered(all, aborted, 'a', 'b', 'c', 'd') as [Abortable, Abortable, Abortable]
  all.remove(a)
  all.remove(c)
  expect(all.size).toBe(2)
  all.abortAll(new Error('enough'))
  expect(aborted.sort()).toEqual(['b', 'd'])
  expect(all.size).toBe(0)
})

test('a request that is removed twice removes no other one', () => {
  const all = new RequestsInFlight<Abortable>()
  const aborted: string[] = []
  const [a] = entered(all, aborted, 'a', 'b') as [Abortable]
  all.remove(a)
  all.remove(a)
  expect(all.size).toBe(1)
})
