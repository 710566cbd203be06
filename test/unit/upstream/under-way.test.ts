import { expect, test } from 'vitest'
import { type Abortable, UnderWay } from '../../../src/upstream/send/in-flight.ts'

const entered = (all: UnderWay<Abortable>, aborted: string[], ...names: string[]): Abortable[] =>
  names.map((name) => {
    const one: Abortable = {
      place: -1,
      abort: () => {
        aborted.push(name)
        all.leave(one)
      },
    }
    all.enter(one)
    return one
  })

test('who has left is not ended, whoever took its place', () => {
  const all = new UnderWay<Abortable>()
  const aborted: string[] = []
  const [a, , c] = entered(all, aborted, 'a', 'b', 'c', 'd') as [Abortable, Abortable, Abortable]
  all.leave(a)
  all.leave(c)
  expect(all.size).toBe(2)
  all.abortAll(new Error('enough'))
  expect(aborted.sort()).toEqual(['b', 'd'])
  expect(all.size).toBe(0)
})

test('leaving twice takes nobody else out', () => {
  const all = new UnderWay<Abortable>()
  const aborted: string[] = []
  const [a] = entered(all, aborted, 'a', 'b') as [Abortable]
  all.leave(a)
  all.leave(a)
  expect(all.size).toBe(1)
})
