import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseEntityTag, tagOfCoded, withUncodedTags } from '../../../src/http/conditional/preconditions.ts'
import { parseAcceptEncoding } from '../../../src/http/content-coding.ts'

describe('Accept-Encoding', () => {
  test.each<[string, string, string, number | undefined]>([
    ['a coding without a weight', 'gzip', 'gzip', 1],
    ['a weight', 'gzip; q=0.25', 'gzip', 0.25],
    ['a weight in capitals', 'GZIP;Q=0.5', 'gzip', 0.5],
    ['a refusal', 'gzip;q=0.000', 'gzip', 0],
    ['one that is not named', 'gzip', 'br', undefined],
    ['one that only the star names', '*;q=0.3', 'br', 0.3],
    ['its own weight before that of the star', 'br;q=0, *', 'br', 0],
    ['identity by the star', '*;q=0', 'identity', 0],
    ['an old name', 'x-gzip;q=0.7', 'gzip', 0.7],
    ['the first of two', 'gzip;q=0.1, gzip;q=0.9', 'gzip', 0.1],
    ['a weight above one, which is none', 'gzip;q=1.5', 'gzip', 1],
    ['a weight with four digits, which is none', 'gzip;q=0.1234', 'gzip', 1],
    ['a negative weight, which is none', 'gzip;q=-1', 'gzip', 1],
    ['another parameter before the weight', 'gzip;level=9;q=0.2', 'gzip', 0.2],
    ['a member behind an empty one', ' , ,br', 'br', 1],
    ['a name that every object has', '__proto__, constructor', 'br', undefined],
  ])('%s: %s', (_, value, coding, weight) => {
    expect(parseAcceptEncoding(value).weightOf(coding)).toBe(weight)
  })

  test('any text is read, and every weight is one', () => {
    const text = fc.oneof(
      fc.string(),
      fc
        .array(fc.constantFrom('gzip', 'br', '*', 'identity', ';q=', '0', '.5', '1', ',', ' ', '='))
        .map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(text, fc.constantFrom('gzip', 'br', 'identity'), (value, coding) => {
        const weight = parseAcceptEncoding(value).weightOf(coding) ?? 0
        expect(weight >= 0 && weight <= 1).toBe(true)
      }),
    )
  })
})

describe('entity tags of coded forms', () => {
  test.each([
    ['a strong one', '"abc"', '"abc~gzip"'],
    ['an empty one', '""', '"~gzip"'],
    ['a weak one, which says the same of both', 'W/"abc"', 'W/"abc"'],
    ['none at all', 'abc', 'abc'],
  ])('%s', (_, tag, coded) => {
    expect(tagOfCoded(tag, 'gzip')).toBe(coded)
  })

  test.each([
    ['one of ours', '"abc~br"', '"abc~br", "abc"'],
    ['several forms of one', '"abc~br", "abc~gzip"', '"abc~br", "abc~gzip", "abc"'],
    ['none of ours', '"abc", W/"d"', '"abc", W/"d"'],
    ['one that only looks alike', '"abc~deflate"', '"abc~deflate"'],
    ['any', '*', '*'],
  ])('what an upstream is asked with: %s', (_, list, asked) => {
    expect(withUncodedTags(list)).toBe(asked)
  })

  test('the tag that a form was made from always comes back', () => {
    const opaque = fc.stringMatching(/^[!#-~]{0,20}$/)
    fc.assert(
      fc.property(opaque, fc.constantFrom('br', 'gzip', 'zstd'), (text, coding) => {
        const coded = tagOfCoded(`"${text}"`, coding)
        expect(parseEntityTag(coded)).toBeDefined()
        expect(withUncodedTags(coded)).toBe(`${coded}, "${text}"`)
      }),
    )
  })
})
