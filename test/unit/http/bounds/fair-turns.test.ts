import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createFairTurns } from '../../../../src/http/bounds/fair-turns.ts'

const turnsOf = (perTurn: number, gatherMs = 0) => {
  const turns = createFairTurns(perTurn, gatherMs)
  const log: string[] = []
  const bring = (client: string, count: number): void => {
    for (let at = 0; at < count; at += 1) turns.begin(client, () => log.push(client))
  }
  return { turns, log, bring }
}

test('work starts at once up to the limit of a turn of the event loop, the rest in the next turns', async () => {
  const { log, bring } = turnsOf(2)
  bring('a', 5)
  expect(log).toHaveLength(2)
  await nextTurn()
  expect(log).toHaveLength(4)
  await nextTurn()
  expect(log).toHaveLength(5)
})

test('a client with little work does not wait for a client with much', async () => {
  const { log, bring } = turnsOf(2)
  bring('many', 1_000)
  bring('few', 1)
  await nextTurn()
  expect(log.slice(2)).toEqual(['many', 'few'])
})

test.each([0, 60_000])(
  'after a turn without any, work begins at once (gathered for %i ms)',
  async (gatherMs) => {
    const { log, bring } = turnsOf(1, gatherMs)
    for (let count = 1; count <= 3; count += 1) {
      bring('a', 1)
      expect(log).toHaveLength(count)
      await nextTurn()
      await nextTurn()
    }
  },
)

test('work that arrives turn by turn is gathered, so that other clients are not behind it', async () => {
  const { log, bring } = turnsOf(2, 60_000)
  bring('many', 1)
  expect(log.splice(0)).toEqual(['many'])
  for (let turn = 0; turn < 4; turn += 1) {
    await nextTurn()
    expect(log).toEqual([])
    bring(turn === 3 ? 'few' : 'many', 1)
  }
  await nextTurn()
  await nextTurn()
  expect(log).toEqual(['many', 'few'])
})

test('in a busy process, whose turns are long, gathered work starts as fast as it arrives', async () => {
  const { log, bring } = turnsOf(4, 4)
  for (let turn = 0; turn < 20; turn += 1) {
    bring('a', 1)
    const until = performance.now() + 5
    while (performance.now() < until);
    await nextTurn()
  }
  expect(log.length).toBeGreaterThan(15)
})

test('all work starts, in whatever order it arrives', async () => {
  const { log, bring } = turnsOf(3, 8)
  let brought = 0
  for (let turn = 0; turn < 200; turn += 1) {
    const count = (turn * 7) % 4
    bring(`client ${turn % 5}`, count)
    brought += count
    await nextTurn()
  }
  for (let turn = 0; turn < 200 && log.length < brought; turn += 1) await nextTurn()
  expect(log).toHaveLength(brought)
})

test('work that adds more work does not exceed the limit of its turn', async () => {
  const { turns, log, bring } = turnsOf(1)
  bring('a', 1)
  turns.begin('b', () => bring('b', 2))
  bring('c', 1)
  for (let turn = 0; turn < 5; turn += 1) await nextTurn()
  expect(log).toEqual(['a', 'c', 'b', 'b'])
})
