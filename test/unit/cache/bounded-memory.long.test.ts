import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { createAdmission } from '../../../src/cache/store/admission.ts'
import { HitForMiss } from '../../../src/cache/store/hit-for-miss.ts'
import { InvalidationLog } from '../../../src/cache/store/invalidation-log.ts'
import { QuarantinedTags } from '../../../src/cache/store/quarantined-tags.ts'
import { createIntern } from '../../../src/cache/store/stored-response.ts'
import { memoize } from '../../../src/http/memo.ts'
import { createTargetMemo, type RecalledTarget } from '../../../src/service/target-memo.ts'

// What is remembered of texts that clients and upstreams choose, pushed against its bound.

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const heapBytes = (): number => {
  collect()
  return process.memoryUsage().heapUsed
}

/** Different texts, each with its own characters. */
const text = (length: number, at: number): string => Buffer.alloc(length, `${at} `).toString()

type Remember = (text: string) => void

/** More than any bound on the number of texts, or 32 MB. */
const countOf = (length: number): number => Math.min(20_000, 32_000_000 / length)

test.each<[structure: string, make: () => Remember, lengths: readonly number[], mostMebibytes: number]>([
  [
    'keys of the hit-for-miss memory',
    () => {
      const memo = new HitForMiss()
      return (key) => memo.add(key, 0)
    },
    [8_000, 100],
    4,
  ],
  ['texts that responses have in common', () => createIntern(), [8_000, 64], 4],
  ['field values that were read before', () => memoize((value) => value.split(' ')), [8_000, 256], 16],
  [
    'canonical forms of targets',
    () => {
      const memo = createTargetMemo(8_192)
      return (target) => memo.remember(target, { target } as RecalledTarget)
    },
    [8_000, 512],
    16,
  ],
  [
    'tags that were invalidated',
    () => {
      const log = new InvalidationLog(16_384)
      return (tag) => log.record([tag])
    },
    [8_000, 128],
    8,
  ],
  [
    'tags of writes that may still be carried out',
    () => {
      const unsettled = new QuarantinedTags(16_384)
      return (tag) => unsettled.addUntil([tag], 0, 1_000)
    },
    [8_000, 128],
    8,
  ],
  [
    'keys that were asked for once',
    () => {
      const { admits } = createAdmission({ mode: 'second-request', usedShare: () => 1 })
      return admits
    },
    [8_000, 100],
    4,
  ],
])('%s take so much memory and no more', (_, make, lengths, maxMebibytes) => {
  const before = heapBytes()
  const remember = make()
  for (const length of lengths) for (let at = 0; at < countOf(length); at += 1) remember(text(length, at))
  expect(heapBytes() - before).toBeLessThan(maxMebibytes * 1024 * 1024)
  remember('it lives until here')
})
