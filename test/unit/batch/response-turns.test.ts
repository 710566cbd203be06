import { expect, test } from 'vitest'
import { batchOf, runBatch } from './batch-of.ts'

const items = 10
const requests = Array.from({ length: items }, (_, id) => ({
  method: 'PUT',
  path: `/site/v2/posts/${id + 1}`,
}))

/** Turns of the event loop that a batch takes whose items have responses of so many characters. */
const turnsFor = async (characters: number): Promise<number> => {
  let turns = 0
  const content = Buffer.from(JSON.stringify('x'.repeat(characters)))
  const batch = batchOf({
    turn: () => {
      turns += 1
      return new Promise(setImmediate)
    },
    dispatch: async () => ({ status: 200, headers: [], content }),
  })
  const { responses } = await runBatch(batch, requests)
  expect(responses).toHaveLength(items)
  return turns
}

test('long responses of items are read in a turn of the event loop each, short ones together', async () => {
  const short = await turnsFor(100)
  expect(await turnsFor(100_000)).toBe(short + items - 1)
  expect(await turnsFor(20_000)).toBe(short + 3)
})
