import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { described, oneGet, onePost } from './described.ts'

const service = described(
  oneGet('/x', [
    { name: 'n', in: 'query', schema: { type: 'integer', format: 'int64' } },
    { name: 'list', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
    { name: 'csv', in: 'query', explode: false, schema: { type: 'array', items: { type: 'string' } } },
    {
      name: 'o',
      in: 'query',
      style: 'deepObject',
      explode: true,
      schema: { type: 'object', properties: { a: {}, b: {} } },
    },
  ]),
)

/** A text in one of its spellings: each character escaped or not, digits of escapes in either case. */
const spelling = (text: string, choices: readonly number[]): string =>
  Array.from(text, (character, index) => {
    const choice = choices[index % Math.max(1, choices.length)] ?? 0
    const escaped = Array.from(
      Buffer.from(character),
      (octet) => `%${octet.toString(16).padStart(2, '0')}`,
    ).join('')
    const isPlain = /[\w.~-]/.test(character)
    if (isPlain && choice % 3 === 0) return character
    return choice % 2 === 0 ? escaped : escaped.toUpperCase()
  }).join('')

const names = ['list', 'csv', 'o[a]', 'o[b]', 'z', 'y', 'list']
const pair = fc.tuple(fc.constantFrom(...names), fc.string({ unit: 'grapheme-ascii', maxLength: 6 }))
const pairs = fc.uniqueArray(pair, {
  maxLength: 8,
  selector: ([name]) => (name === 'list' || name === 'z' ? Symbol() : name),
})
const choices = fc.array(fc.nat(11), { minLength: 1, maxLength: 12 })

const write = (parts: readonly (readonly [string, string])[], seeds: readonly number[]): string =>
  parts.map(([name, value]) => `${spelling(name, seeds)}=${spelling(value, seeds)}`).join('&')

const canonical = (query: string): string => {
  const result = service.validate({ query })
  if (result.kind === 'invalid') throw new Error(`${query}: ${JSON.stringify(result.body)}`)
  return result.query
}

/** What a decoder of forms reads: values by name, each in its order, and the order of undeclared names. */
const decoded = (query: string): unknown => {
  const parameters = new URLSearchParams(query)
  const byName = [...new Set(parameters.keys())].sort().map((name) => [name, parameters.getAll(name)])
  return [byName, [...parameters].filter(([name]) => name === 'z' || name === 'y')]
}

describe('the canonical query', () => {
  test('is canonical', () => {
    fc.assert(
      fc.property(pairs, choices, (parts, seeds) => {
        const once = canonical(write(parts, seeds))
        expect(canonical(once)).toBe(once)
      }),
    )
  })

  test('decodes as the original does', () => {
    fc.assert(
      fc.property(pairs, choices, (parts, seeds) => {
        const query = write(parts, seeds)
        expect(decoded(canonical(query))).toEqual(decoded(query))
      }),
    )
  })

  test('is one for all spellings and all orders of declared names', () => {
    fc.assert(
      fc.property(pairs, choices, choices, fc.integer(), (parts, one, other, seed) => {
        const groups = new Map<string, (readonly [string, string])[]>()
        for (const part of parts) {
          const key = part[0] === 'z' || part[0] === 'y' ? 'undeclared' : part[0]
          groups.set(key, [...(groups.get(key) ?? []), part])
        }
        const order = [...groups.values()]
        const shuffled = seed % 2 === 0 ? order.reverse() : [...order.slice(1), ...order.slice(0, 1)]
        expect(canonical(write(shuffled.flat(), other))).toBe(canonical(write(parts, one)))
      }),
    )
  })

  test('differs when any decoded value differs', () => {
    fc.assert(
      fc.property(pairs, pairs, choices, (one, other, seeds) => {
        const [a, b] = [write(one, seeds), write(other, seeds)]
        if (canonical(a) === canonical(b)) expect(decoded(a)).toEqual(decoded(b))
      }),
    )
  })
})

const digits = fc.oneof(
  fc.bigInt({ min: -(2n ** 66n), max: 2n ** 66n }),
  fc.integer({ min: -3, max: 3 }).map((near) => 2n ** 63n + BigInt(near)),
  fc.integer({ min: -3, max: 3 }).map((near) => -(2n ** 63n) + BigInt(near)),
)
const isInt64 = (value: bigint): boolean => value >= -(2n ** 63n) && value < 2n ** 63n

describe('64-bit integers are compared without a loss of digits', () => {
  test('in a query', () => {
    fc.assert(
      fc.property(digits, (value) => {
        expect(service.validate({ query: `n=${value}` }).kind).toBe(isInt64(value) ? 'valid' : 'invalid')
      }),
    )
  })

  test('anywhere in a body', () => {
    const item = { type: 'object', properties: { 'a/b': { type: 'integer', format: 'int64' } } }
    const body = described(onePost({ type: 'object', additionalProperties: { type: 'array', items: item } }))
    fc.assert(
      fc.property(digits, fc.string({ maxLength: 5 }), (value, name) => {
        const content = `{${JSON.stringify(`_${name}`)}: [ {}, {"a\\/b" : ${value} } ]}`
        const result = body.validate({
          method: 'POST',
          content,
          fields: { 'content-type': 'application/json' },
        })
        expect(result.kind).toBe(isInt64(value) ? 'valid' : 'invalid')
      }),
    )
  })

  test('against bounds of the document', () => {
    const bounded = described(
      oneGet('/x', [
        { name: 'n', in: 'query', schema: { type: 'integer', maximum: Number.MAX_SAFE_INTEGER } },
      ]),
    )
    expect(bounded.validate({ query: 'n=9007199254740991' }).kind).toBe('valid')
    expect(bounded.validate({ query: 'n=9007199254740992' }).kind).toBe('invalid')
  })
})
