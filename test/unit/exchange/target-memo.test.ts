import { describe, expect, test } from 'vitest'
import { createTargetMemo, type ValidTarget } from '../../../src/service/target-memo.ts'

const recalled = (target: string): ValidTarget =>
  ({ kind: 'valid', target, publicKey: target }) as unknown as ValidTarget

describe('target memo', () => {
  test('returns a stored form, and none after it was cleared', () => {
    const memo = createTargetMemo(10)
    memo.remember('/a', recalled('/a'))
    expect(memo.recall('/a')).toMatchObject({ target: '/a' })
    expect(memo.recall('/b')).toBeUndefined()
    memo.clear()
    expect(memo.recall('/a')).toBeUndefined()
  })

  test('a target in use survives a flood, an unused one is dropped', () => {
    const memo = createTargetMemo(100)
    memo.remember('/kept', recalled('/kept'))
    memo.remember('/lost', recalled('/lost'))
    for (let i = 0; i < 10_000; i += 1) {
      memo.remember(`/flood/${i}`, recalled('x'))
      if (i % 20 === 0) memo.recall('/kept')
    }
    expect(memo.recall('/kept')).toMatchObject({ target: '/kept' })
    expect(memo.recall('/lost')).toBeUndefined()
    const held = Array.from({ length: 10_000 }, (_, i) => memo.recall(`/flood/${i}`)).filter(Boolean)
    expect(held.length).toBeLessThanOrEqual(100)
  })

  test('a target that is long is not remembered', () => {
    const memo = createTargetMemo(10)
    const long = `/${'x'.repeat(600)}`
    memo.remember(long, recalled(long))
    expect(memo.recall(long)).toBeUndefined()
  })
})
