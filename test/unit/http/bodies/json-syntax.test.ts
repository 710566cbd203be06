import { expect, test } from 'vitest'
import { isJsonInPieces } from '../../../../src/http/bodies/json-syntax.ts'
import { atOnce } from '../../../../src/http/bodies/turns.ts'
import { oneOf, randomFrom } from '../../../support/random.ts'

const isJson = (text: string): boolean => atOnce(isJsonInPieces(Buffer.from(text)))

const isParsed = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const texts = [
  ...[
    '',
    ' ',
    '1',
    '-0',
    '01',
    '1.',
    '.5',
    '1e',
    '1e+',
    '1E-5',
    '-',
    '+1',
    '1 2',
    '1x',
    'tru',
    'true',
    'truex',
  ],
  ...['null', 'nul', '"', '"a', '"a"', '"\\', '"\\"', '"\\u12"', '"\\u12aF"', '"\\x"', '"\t"', '"\u0001"'],
  ...[
    '{}',
    '{',
    '}',
    '[]',
    ']',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[[]',
    '[]]',
    '{]',
    '[}',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
  ],
  ...[
    '{1:2}',
    '{"a" : [1, {"b":\n[]}], "a": "\u2028"}',
    '[1] []',
    '\ufeff1',
    '[1}',
    '{"a":1]',
    '[{}]',
    '{"":{}}',
  ],
  '[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{"a":[[1]]}]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]',
]

test.each(texts)('%s is JSON exactly when JSON.parse takes it', (text) => {
  expect(isJson(text)).toBe(isParsed(text))
})

test('so are fifty thousand texts that differ from JSON in a few signs', () => {
  const random = randomFrom(7)
  const signs = '{}[],:"\\0123456789.eE+-truefalsn \n\tu'
  const whole = texts.filter(isParsed)
  const wrong: string[] = []
  for (let round = 0; round < 50_000; round += 1) {
    let text = `[${oneOf(random, whole)},${oneOf(random, whole)},{"a":${oneOf(random, whole)}}]`
    for (let changes = Math.floor(random() * 3); changes > 0; changes -= 1) {
      const at = Math.floor(random() * text.length)
      const sign = signs[Math.floor(random() * signs.length)] ?? ''
      text = text.slice(0, at) + sign + text.slice(at + Math.floor(random() * 2))
    }
    if (isJson(text) !== isParsed(text)) wrong.push(text)
  }
  expect(wrong).toEqual([])
})

test('a long text is read in pieces, however deep it is', () => {
  const work = isJsonInPieces(Buffer.from('['.repeat(500_000) + ']'.repeat(500_000)))
  let pieces = 1
  let step = work.next()
  for (; step.done !== true; step = work.next()) pieces += 1
  expect(step.value).toBe(true)
  expect(pieces).toBeGreaterThan(10)
})
