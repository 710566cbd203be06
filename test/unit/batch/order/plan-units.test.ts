import { expect, test } from 'vitest'
import { conflictGroups, type Waits } from '../../../../src/batch/order/plan-order.ts'
import { planUnits } from '../../../../src/batch/order/plan-units.ts'

const free = (count: number): Waits[] => Array.from({ length: count }, () => [])
const cutOf = (waits: readonly Waits[], parts: number, maxItems = 25, unshared: readonly number[] = []) =>
  planUnits(waits, conflictGroups(waits), {
    parts,
    maxItems,
    mayShareRequest: (index) => !unshared.includes(index),
  }).map(({ members, waits: earlier }) => [members, earlier])

test.each<[what: string, waits: Waits[], groups: number[][]]>([
  ['nobody waits', free(3), [[0], [1], [2]]],
  ['a place that does not run', [[], undefined, [0]], [[0, 2]]],
  ['waiting through another', [[], [0], [], [1]], [[0, 1, 3], [2]]],
  ['two that one waits for', [[], [], [0, 1]], [[0, 1, 2]]],
  ['two lines that meet late', [[], [], [0], [1], [2, 3]], [[0, 1, 2, 3, 4]]],
])('groups: %s', (_, waits, groups) => {
  expect(conflictGroups(waits)).toEqual(groups)
})

test.each<[what: string, units: unknown, expected: unknown]>([
  [
    'items keep their waits',
    cutOf([[], undefined, [0]], Number.POSITIVE_INFINITY),
    [
      [[0], []],
      [[2], [0]],
    ],
  ],
  [
    'five in two upstream batches',
    cutOf(free(5), 2),
    [
      [[0, 2, 4], []],
      [[1, 3], []],
    ],
  ],
  [
    'more upstream batches than items',
    cutOf(free(2), 4),
    [
      [[0], []],
      [[1], []],
    ],
  ],
  [
    'the longest group first, and even',
    cutOf([[], [], [0], [2], []], 2),
    [
      [[0, 2, 3], []],
      [[1, 4], []],
    ],
  ],
  [
    'a group too long for one upstream batch goes in several, one after the other',
    cutOf([[], [0], [1], [2], [3], []], 1, 2),
    [
      [[0, 1], []],
      [[2, 3], [0]],
      [[4], [1]],
      [[5], []],
    ],
  ],
  [
    'upstream batches that are full are not overfilled',
    cutOf(free(5), 1, 2),
    [
      [[0, 3], []],
      [[1, 4], []],
      [[2], []],
    ],
  ],
  [
    'what cannot go in an upstream batch goes by itself, and with it who waits for it',
    cutOf([[], [0], [], []], 1, 25, [0]),
    [
      [[0], []],
      [[1], [0]],
      [[2, 3], []],
    ],
  ],
])('units: %s', (_, units, expected) => {
  expect(units).toEqual(expected)
})
