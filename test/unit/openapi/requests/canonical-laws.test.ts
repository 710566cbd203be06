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

const texts = { type: 'array', items: { type: 'string' } }
const sized = { type: 'integer', default: 10 }

const withSets = described(
  oneGet('/x', [
    { name: 'list', in: 'query', schema: texts, 'x-trellis-set': true },
    { name: 'csv', in: 'query', explode: false, schema: texts, 'x-trellis-set': true },
    {
      name: 'pipes',
      in: 'query',
      style: 'pipeDelimited',
      explode: false,
      schema: texts,
      'x-trellis-set': true,
    },
    { name: 'sort', in: 'query', explode: false, schema: texts },
    { name: 'size', in: 'query', schema: sized, 'x-trellis-drop-default': true },
    { name: 'page', in: 'query', schema: { type: 'integer', default: 1 } },
    { name: 'text', in: 'query', schema: { type: 'string', default: 'a b' }, 'x-trellis-drop-default': true },
    {
      name: 'kinds',
      in: 'query',
      explode: false,
      schema: { ...texts, default: ['a', 'b'] },
      'x-trellis-set': true,
      'x-trellis-drop-default': true,
    },
  ]),
)

const canonicalWithSets = (query: string): string => {
  const result = withSets.validate({ query })
  if (result.kind === 'invalid') throw new Error(`${query}: ${JSON.stringify(result.body)}`)
  return result.query
}

describe('x-trellis-set and x-trellis-drop-default', () => {
  test.each([
    ['items of a set are sorted', 'list=b&z=1&list=a', 'list=a&list=b&z=1'],
    ['in a list with commas too', 'csv=b,%61,a%2Cb', 'csv=a,a%2Cb,b'],
    ['and between pipes', 'pipes=b|a', 'pipes=a|b'],
    ['no item is left out', 'list=a&list=a', 'list=a&list=a'],
    ['other lists keep their order', 'sort=name,-date', 'sort=name,-date'],
    ['a value that is the default is left out', 'size=%310&page=1', 'page=1'],
    ['other values are not', 'size=11', 'size=11'],
    ['nor is an empty text', 'text=', 'text='],
    ['nor is a name alone', 'text', 'text'],
    ['a text is compared decoded', 'text=a%20b', ''],
    ['a plus may be a plus or a space', 'text=a+b', 'text=a+b'],
    ['a list that is the default is left out', 'kinds=a,b', ''],
    ['in every order where the order has no meaning', 'kinds=b,a', ''],
    ['a list with one more item is not', 'kinds=a,b,b', 'kinds=a,b,b'],
  ])('%s', (_title, query, expected) => {
    expect(canonicalWithSets(query)).toBe(expected)
  })

  const items = fc.array(fc.string({ unit: 'grapheme-ascii', maxLength: 3 }), { maxLength: 6 })
  const escaped = (text: string, seeds: readonly number[]): string =>
    spelling(text, seeds).replaceAll(',', '%2C')
  const listQuery = (values: readonly string[], seeds: readonly number[]): string =>
    values.map((value) => `list=${escaped(value, seeds)}`).join('&')
  const csvQuery = (values: readonly string[], seeds: readonly number[]): string =>
    `csv=${values.map((value) => escaped(value, seeds)).join(',')}`

  test.each([
    ['a repeated name', listQuery, (query: string) => new URLSearchParams(query).getAll('list')],
    [
      'one value with commas',
      csvQuery,
      (query: string) => query.slice('csv='.length).split(',').map(decodeURIComponent),
    ],
  ])(
    'all orders and spellings of a set have one form, and it has the same items: %s',
    (_title, write, read) => {
      fc.assert(
        fc.property(items, choices, choices, fc.nat(720), (values, one, other, order) => {
          const given = write(values, one)
          const shuffled = values
            .map((value, index) => ({ value, at: (index * 7919 + order) % 6 }))
            .sort((a, b) => a.at - b.at)
            .map(({ value }) => value)
          const once = canonicalWithSets(given)
          expect(canonicalWithSets(write(shuffled, other))).toBe(once)
          expect(canonicalWithSets(once)).toBe(once)
          if (values.length > 0) expect(read(once).sort()).toEqual([...values].sort())
        }),
      )
    },
  )

  test('two values share a form only if they are equal, or one is the default and the other is not given', () => {
    const value = fc.oneof(fc.constantFrom(undefined, '10', '010', '1'), fc.integer().map(String))
    const query = (text: string | undefined): string => (text === undefined ? '' : `size=${text}`)
    const isValid = (text: string | undefined): boolean =>
      withSets.validate({ query: query(text) }).kind === 'valid'
    fc.assert(
      fc.property(value.filter(isValid), value.filter(isValid), (one, other) => {
        const isSame = canonicalWithSets(query(one)) === canonicalWithSets(query(other))
        expect(isSame).toBe((one ?? '10') === (other ?? '10'))
      }),
    )
  })

  test.each([
    [
      'a set that is no parameter of the query',
      { name: 'h', in: 'header', schema: texts, 'x-trellis-set': true },
    ],
    ['a set with another value', { name: 'q', in: 'query', schema: texts, 'x-trellis-set': 'yes' }],
    ['a set that is no list', { name: 'q', in: 'query', schema: { type: 'string' }, 'x-trellis-set': true }],
    ['no default', { name: 'q', in: 'query', schema: {}, 'x-trellis-drop-default': true }],
    [
      'a required parameter',
      { name: 'q', in: 'query', required: true, schema: sized, 'x-trellis-drop-default': true },
    ],
    [
      'an integer that a double does not hold',
      { name: 'q', in: 'query', schema: { default: 2 ** 60 }, 'x-trellis-drop-default': true },
    ],
  ])('%s is a fault of the document', (_title, parameter) => {
    expect(() => described(oneGet('/x', [parameter]))).toThrow('x-trellis-')
  })

  test('a default is found through a reference, and beside it only in 3.1', () => {
    const parameter = {
      name: 'q',
      in: 'query',
      schema: { $ref: '#/components/schemas/size', default: 5 },
      'x-trellis-drop-default': true,
    }
    const queryIn = (openapi: string, query: string): string => {
      const document = { ...oneGet('/x', [parameter], openapi), components: { schemas: { size: sized } } }
      const result = described(document).validate({ query })
      return result.kind === 'valid' ? result.query : 'invalid'
    }
    expect(['3.0.3', '3.1.0'].map((version) => [queryIn(version, 'q=5'), queryIn(version, 'q=10')])).toEqual([
      ['q=5', ''],
      ['', 'q=10'],
    ])
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
          headers: { 'content-type': 'application/json' },
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
