import { expect, test } from 'vitest'
import { createInvalidatedTags } from '../../../src/cluster/redis/tier.ts'

test('what the ledger has forgotten may have named any tag of an entry from before', () => {
  const tags = createInvalidatedTags(10)
  tags.restart('one', 0)
  expect(tags.touchedSince(['a'], 'one', 3)).toBe(false)
  tags.restart('one', 5)
  expect(tags.touchedSince(['a'], 'one', 3)).toBe(true)
  expect(tags.touchedSince(['a'], 'one', 5)).toBe(false)
  expect(tags.touchedSince(['a'], 'two', 9)).toBe(true)
})
