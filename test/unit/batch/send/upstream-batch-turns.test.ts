import { expect, test } from 'vitest'
import { createUpstreamBatch } from '../../../../src/batch/send/upstream-batch.ts'
import { systemClock } from '../../../../src/clock.ts'
import { createFairTurns } from '../../../../src/http/bounds/fair-turns.ts'

const size = 25

test('the items of an upstream batch come back a few in a turn of the event loop', async () => {
  const item = '{"body":{},"status":200,"headers":[]}'
  const content = Buffer.from(`{"responses":[${Array(size).fill(item).join(',')}]}`)
  const turns = createFairTurns(1)
  const batch = createUpstreamBatch({
    size,
    forward: async () => ({ status: 207, headers: [], content }),
    stop: new AbortController().signal,
    leftMs: () => Number.POSITIVE_INFINITY,
    clock: systemClock,
    turn: () => new Promise<void>((resolve) => turns.begin('', resolve)),
    isSent: () => true,
    refusesWhole: () => false,
    watch: { begun: () => {}, ended: () => {} },
  })
  let turn = 0
  const perTurn = new Map<number, number>()
  const joined = Array.from({ length: size }, async (_, place) => {
    const alone = () => Promise.reject(new Error('nothing goes by itself'))
    await batch.join(place, { method: 'PUT', path: '/', headers: {}, content: undefined, alone })
    perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1)
  })
  const all = Promise.all(joined)
  let isOver = false
  void all.then(() => {
    isOver = true
  })
  while (!isOver) {
    await new Promise(setImmediate)
    turn += 1
  }
  await all
  expect(Math.max(...perTurn.values())).toBeLessThanOrEqual(3)
})
