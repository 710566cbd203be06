import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSignatures, type Purpose, subkey } from '../../../src/cluster/redis/values.ts'

const key = 'a'.repeat(32)
const other = 'b'.repeat(32)
const name = 'trellis:e:{x}'
const content = Buffer.from('the head of an entry, and its content')
const entries = createSignatures([key], 'entry')

test('a signed value is verified under the same name', () => {
  expect(entries.verified(name, entries.sign(name, [content.subarray(0, 9), content.subarray(9)]))).toEqual(
    content,
  )
  expect(entries.verifiedText(name, entries.signText(name, 't:site/1'))).toBe('t:site/1')
})

test('any changed byte of a signed entry makes it invalid', () => {
  const signed = entries.sign(name, [content])
  fc.assert(
    fc.property(fc.nat(signed.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
      const damaged = Buffer.from(signed)
      damaged.writeUInt8(damaged.readUInt8(at) ^ flip, at)
      expect(entries.verified(name, damaged)).toBeUndefined()
    }),
    { numRuns: 2_000 },
  )
})

test('cut off anywhere, or with anything behind it, a signed entry is invalid', () => {
  const signed = entries.sign(name, [content])
  for (let length = 0; length < signed.length; length += 1) {
    expect(entries.verified(name, signed.subarray(0, length))).toBeUndefined()
  }
  expect(entries.verified(name, Buffer.concat([signed, Buffer.alloc(1)]))).toBeUndefined()
})

test('any changed character of a signed text makes it invalid', () => {
  const signed = entries.signText(name, 't:site/any/posts')
  for (let at = 0; at < signed.length; at += 1) {
    const changed = `${signed.slice(0, at)}${signed[at] === 'A' ? 'B' : 'A'}${signed.slice(at + 1)}`
    // The last of 43 digits has four bits that count for nothing.
    if (at !== 44) expect(entries.verifiedText(name, changed)).toBeUndefined()
  }
})

test('bytes that move from the name to the content make a signature invalid', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string({ minLength: 1 }), (before, after, moved) => {
      const signed = entries.sign(before, [Buffer.from(moved + after)])
      const [mark, begin] = [signed.subarray(0, 36), Buffer.from(after)]
      expect(entries.verified(before + moved, Buffer.concat([mark, begin]))).toBeUndefined()
    }),
  )
})

test.each<[string, readonly string[], readonly string[], boolean]>([
  ['the same key', [key], [key], true],
  ['another key', [key], [other], false],
  ['a list that has it second', [key], [other, key], true],
  ['a list whose first one it is not signed with', [other, key], [key], false],
  ['no key, for what is signed', [key], [], false],
  ['a key, for what is not signed', [], [key], false],
  ['no key, for what is not signed', [], [], true],
])('verified with %s: %s, %s, %s', (_, signs, verifies, is) => {
  const [a, b] = [createSignatures(signs, 'note'), createSignatures(verifies, 'note')]
  expect(b.verified(name, a.sign(name, [content]))).toEqual(is ? content : undefined)
  expect(b.verifiedText(name, a.signText(name, 'a:'))).toBe(is ? 'a:' : undefined)
})

test('each purpose has its own key, so that one kind never passes for another', () => {
  const purposes: readonly Purpose[] = ['entry', 'note', 'acknowledgement', 'answer', 'caller']
  expect(new Set(purposes.map((purpose) => subkey(key, purpose).toString('hex'))).size).toBe(purposes.length)
  const signed = entries.sign(name, [content])
  expect(createSignatures([key], 'answer').verified(name, signed)).toBeUndefined()
})
