import { describe, expect, test } from 'vitest'
import { uncheckedSchemas } from '../../../../src/openapi/requests/openapi-requests.ts'
import { cost } from '../../../support/cost.ts'
import { contractOf, described, oneGet, onePost } from './described.ts'

const json = { 'content-type': 'application/json' }
const verdict = (document: object, value: unknown): string =>
  described(document).validate({ method: 'POST', content: JSON.stringify(value), headers: json }).kind

const refusalOf = (document: object, value: unknown): unknown => {
  const response = described(document).validate({
    method: 'POST',
    content: JSON.stringify(value),
    headers: json,
  })
  return response.kind === 'invalid' && response.body
}

describe('patterns run in linear time', () => {
  const hostile = ['^(a+)+$', '(a|a)*b', '^(([a-z])+.)+[A-Z]([a-z])+$', '(x+x+)+y', '^(.*?,){11}P']
  test.each(hostile)('%s answers within a second', (pattern) => {
    const service = described(oneGet('/x', [{ name: 'p', in: 'query', schema: { type: 'string', pattern } }]))
    const query = `p=${'a'.repeat(50_000)}%21`
    expect(cost(() => service.validate({ query }), 1_000, 3)).toBeLessThan(1_000)
  })

  /** ECMAScript is the judge where its own machine is safe. */
  const same: readonly (readonly [string, readonly string[]])[] = [
    ['^\\d{3}-\\d{2}$', ['123-45', '123-456', 'x123-45']],
    ['b', ['abc', 'xyz']],
    ['^.$', ['a', '\n', '\u2028', '\u00e9']],
    ['^\\s+$', [' ', '\u00a0', '\ufeff', '\u200b', 'x']],
    ['^[\\s\\w]+$', ['a b', '\u00a0', '-']],
    ['^\\S+$', ['ab', 'a b', '\u00a0']],
    ['^[a-z\\-/]+$', ['a-/', 'A']],
    ['^\\/x\\.y$', ['/x.y', '/xzy']],
    ['^\\u0041\\x42$', ['AB', 'ab']],
    ['^a{2,3}$', ['aa', 'aaaa']],
    ['^x{y}$', ['x{y}', 'xy']],
    ['^[[]$', ['[', ']']],
    ['a$', ['a', 'a\n', 'ab']],
    ['^(?<n>a|b)+$', ['abab', 'abc']],
    ['^\\p{Lu}$', ['A', 'a', 'É']],
    ['\\bfoo\\b', ['a foo b', 'afoob']],
    ['^\\p{Uppercase_Letter}\\p{gc=Decimal_Number}$', ['A1', 'a1', 'É१']],
    ['^[\\p{Script=Greek}\\p{punct}]+$', ['αβ!', 'ab']],
  ]
  test.each(same)('%s has the result of ECMAScript', (pattern, texts) => {
    const flags = pattern.includes('\\p') ? 'u' : ''
    for (const text of texts) {
      const expected = new RegExp(pattern, flags).test(text) ? 'valid' : 'invalid'
      expect(verdict(onePost({ type: 'string', pattern }), text), JSON.stringify(text)).toBe(expected)
    }
  })

  test.each(['^(?=a)', '(?<!a)b', '(a)\\1', '[', 'a{1,100000}', '^[^]$'])(
    '%s is not checked, and reported',
    (pattern) => {
      const document = onePost({ type: 'string', pattern })
      expect(verdict(document, 'anything')).toBe('valid')
      expect(uncheckedSchemas(contractOf(document)).join('\n')).toContain('is not checked')
    },
  )

  test('each member of a body is checked by its own pattern', () => {
    const document = onePost({
      properties: { a: { type: 'string', pattern: '^a' }, b: { type: 'string', pattern: '^b' } },
      patternProperties: { '^n_': { type: 'number' }, '^s_': { type: 'string' } },
      additionalProperties: false,
    })
    expect(verdict(document, { a: 'a', b: 'b', n_1: 1, s_1: 's' })).toBe('valid')
    expect(verdict(document, { a: 'a', b: 'a' })).toBe('invalid')
    expect(verdict(document, { n_1: 's' })).toBe('invalid')
    expect(verdict(document, { s_1: 1 })).toBe('invalid')
  })

  test('names by a pattern that is not checked declare any member', () => {
    const document = onePost({
      type: 'object',
      patternProperties: { '^(?!x)': { type: 'integer' } },
      additionalProperties: false,
    })
    expect(verdict(document, { y: 'text' })).toBe('valid')
  })
})

describe('OpenAPI 3.0', () => {
  const cases: readonly (readonly [string, object, unknown, string])[] = [
    ['nullable adds null', { type: 'string', nullable: true }, null, 'valid'],
    ['nullable adds null to an enum', { type: 'string', nullable: true, enum: ['a'] }, null, 'valid'],
    ['exclusiveMinimum is a flag', { type: 'integer', minimum: 5, exclusiveMinimum: true }, 5, 'invalid'],
    [
      'without the flag the bound is included',
      { type: 'integer', minimum: 5, exclusiveMinimum: false },
      5,
      'valid',
    ],
    ['keywords of later versions have no meaning', { const: 'a' }, 'b', 'valid'],
    [
      'a keyword with a faulty value has no meaning',
      { type: 'object', required: true, minLength: 'x' },
      {},
      'valid',
    ],
    [
      'readOnly members are not required',
      { type: 'object', required: ['id'], properties: { id: { readOnly: true } } },
      {},
      'valid',
    ],
    [
      'members of every object are not declared',
      { type: 'object', additionalProperties: false, properties: { a: {} } },
      JSON.parse('{"toString":1}'),
      'invalid',
    ],
    [
      'a required member named as one of every object',
      { type: 'object', required: ['constructor'] },
      {},
      'invalid',
    ],
    [
      '__proto__ is a member like others',
      { type: 'object', additionalProperties: false },
      JSON.parse('{"__proto__":1}'),
      'invalid',
    ],
    [
      'a property named __proto__ is described like others',
      JSON.parse('{"additionalProperties":false,"properties":{"__proto__":{"type":"string"}}}'),
      JSON.parse('{"__proto__":1}'),
      'invalid',
    ],
    [
      'a property named __proto__ is declared like others',
      JSON.parse('{"additionalProperties":false,"properties":{"__proto__":{"type":"string"}}}'),
      JSON.parse('{"__proto__":"x"}'),
      'valid',
    ],
  ]
  test.each(cases)('%s', (_title, schema, value, expected) => {
    expect(verdict(onePost(schema, '3.0.3'), value)).toBe(expected)
  })

  test.each(['allOf', 'oneOf', 'anyOf'])('nullable adds null to a member with its type in %s', (keyword) => {
    const owner = { nullable: true, [keyword]: [{ $ref: '#/components/schemas/Owner' }] }
    const schemas = { Owner: { type: 'object', required: ['name'] } }
    const document = onePost({ type: 'object', properties: { owner } }, '3.0.3', { components: { schemas } })
    expect(verdict(document, { owner: null })).toBe('valid')
    expect(verdict(document, { owner: { name: 'x' } })).toBe('valid')
    expect(verdict(document, { owner: {} })).toBe('invalid')
    expect(verdict(document, { owner: 1 })).toBe('invalid')
  })

  test('a fault of what may be null is that of its other form', () => {
    const number = { type: 'integer', maximum: 9 }
    const inAllOf = onePost({ nullable: true, allOf: [number] }, '3.0.3')
    const inAnyOf = onePost({ anyOf: [number, { type: 'null' }] })
    for (const document of [inAllOf, inAnyOf])
      expect(refusalOf(document, 10)).toMatchObject({ errors: [{ detail: 'must be at most 9' }] })
    expect(refusalOf(onePost({ anyOf: [number, { type: 'string' }] }), true)).toMatchObject({
      errors: [{ detail: 'matches none of the allowed forms' }],
    })
  })

  test('members beside a reference have no meaning, in 3.1 they have', () => {
    const components = { components: { schemas: { A: { type: 'string' } } } }
    const schema = { $ref: '#/components/schemas/A', maxLength: 1 }
    expect(verdict(onePost(schema, '3.0.3', components), 'ab')).toBe('valid')
    expect(verdict(onePost({ ...schema, nullable: true }, '3.0.3', components), null)).toBe('invalid')
    expect(verdict(onePost(schema, '3.1.0', components), 'ab')).toBe('invalid')
  })
})

test('a schema that refers to itself is checked at every depth', () => {
  const schemas = {
    Tree: {
      type: 'object',
      properties: { below: { $ref: '#/components/schemas/Tree' }, n: { type: 'integer' } },
    },
  }
  const document = onePost({ $ref: '#/components/schemas/Tree' }, '3.1.0', { components: { schemas } })
  expect(verdict(document, { below: { below: { n: 1 } } })).toBe('valid')
  expect(verdict(document, { below: { below: { n: 'x' } } })).toBe('invalid')
})

test('a base with one of its kinds, each of which has all of the base, is checked once', () => {
  const schemas = {
    Pet: {
      type: 'object',
      required: ['kind'],
      oneOf: [{ $ref: '#/components/schemas/Cat' }, { $ref: '#/components/schemas/Dog' }],
    },
    Cat: { allOf: [{ $ref: '#/components/schemas/Pet' }, { required: ['purrs'] }] },
    Dog: { allOf: [{ $ref: '#/components/schemas/Pet' }, { required: ['barks'] }] },
  }
  for (const name of ['Pet', 'Cat']) {
    const document = onePost({ $ref: `#/components/schemas/${name}` }, '3.0.3', { components: { schemas } })
    expect(verdict(document, { kind: 'cat', purrs: true })).toBe('valid')
    expect(verdict(document, { kind: 'cat' })).toBe('invalid')
  }
})

describe('schemas may be named in an OpenAPI 3.1 document', () => {
  const verdictOf = (schemas: object, schema: object, value: unknown, version = '3.1.0') =>
    verdict(onePost(schema, version, { components: { schemas } }), value)

  test('by $id, from any other schema, and references in it are relative to it', () => {
    const schemas = {
      Pet: { $id: 'https://a.example/pets/pet', properties: { owner: { $ref: '../owner' } } },
      Owner: { $id: 'https://a.example/owner', type: 'object' },
    }
    const pet = { $ref: 'https://a.example/pets/pet' }
    expect(verdictOf(schemas, pet, { owner: {} })).toBe('valid')
    expect(verdictOf(schemas, pet, { owner: 1 })).toBe('invalid')
  })

  test('by $anchor', () => {
    const schemas = { Name: { $anchor: 'name', type: 'string' } }
    expect(verdictOf(schemas, { $ref: '#name' }, 'Tom')).toBe('valid')
    expect(verdictOf(schemas, { $ref: '#name' }, 1)).toBe('invalid')
  })

  test('by $dynamicAnchor: a general list has the items of the schema that uses it', () => {
    const schemas = {
      List: {
        $id: 'https://a.example/list',
        type: 'array',
        items: { $dynamicRef: '#item' },
        $defs: { any: { $dynamicAnchor: 'item' } },
      },
      Names: {
        $id: 'https://a.example/names',
        $ref: 'list',
        $defs: { name: { $dynamicAnchor: 'item', type: 'string' } },
      },
    }
    const [names, list] = [{ $ref: 'https://a.example/names' }, { $ref: 'https://a.example/list' }]
    expect(verdictOf(schemas, names, ['Tom'])).toBe('valid')
    expect(verdictOf(schemas, names, [1])).toBe('invalid')
    expect(verdictOf(schemas, list, [1])).toBe('valid')
  })

  test('a schema with an $id may have references from the root of its file', () => {
    const schemas = {
      Pet: {
        $id: 'https://a.example/pet',
        properties: { owner: { $ref: '#/components/schemas/Owner' } },
      },
      Owner: { type: 'object' },
    }
    expect(verdictOf(schemas, { $ref: '#/components/schemas/Pet' }, { owner: 1 })).toBe('invalid')
  })

  test('and examples, values and properties name nothing', () => {
    const schemas = {
      Name: { $anchor: 'name', type: 'string' },
      Data: { const: { $anchor: 'name' }, examples: [{ $anchor: 'name' }], properties: { $anchor: {} } },
    }
    expect(verdictOf(schemas, { $ref: '#name' }, 1)).toBe('invalid')
    expect(verdictOf(schemas, { properties: { default: { $ref: '#name' } } }, { default: 1 })).toBe('invalid')
  })

  test('and a name that no schema has is a fault of the document', () => {
    const schemas = { Pet: { $id: 'https://a.example/pet' } }
    for (const reference of ['#pet', 'https://a.example/cat', '../pet', 'https://a.example/pet#/x'])
      expect(() => verdictOf(schemas, { $ref: reference }, 1), reference).toThrow('leads to nothing')
    const named = { Pet: { $id: 'https://a.example/pet', $anchor: 'pet' } }
    expect(() => verdictOf(named, { $ref: 'https://a.example/pet#pet' }, 1, '3.0.3')).toThrow('leads to')
  })
})

test('references that only lead to one another end', () => {
  const schemas = { A: { $ref: '#/components/schemas/B' }, B: { $ref: '#/components/schemas/A' } }
  const document = onePost({ $ref: '#/components/schemas/A' }, '3.1.0', { components: { schemas } })
  expect(['valid', 'invalid']).toContain(verdict(document, 1))
})

describe('routes', () => {
  const paths = (...templates: string[]) => ({
    openapi: '3.1.0',
    paths: Object.fromEntries(templates.map((template) => [template, { get: {} }])),
  })
  const templateOf = (templates: string[], path: string): string => {
    const found = described(paths(...templates)).find('GET', path)
    return found.kind === 'found' ? found.row.template : found.kind
  }
  const cases: readonly (readonly [string[], string, string])[] = [
    [['/{a}', '/b'], '/b', '/b'],
    [['/{a}', '/x{a}', '/x{a}y'], '/x1y', '/x{a}y'],
    [['/{a}', '/x{a}', '/x{a}y'], '/x1', '/x{a}'],
    [['/{a}', '/x{a}', '/x{a}y'], '/1', '/{a}'],
    [['/a/{x}/c', '/a/b/d'], '/a/b/c', '/a/{x}/c'],
    [['/{a}/b', '/c/{d}'], '/c/b', '/c/{d}'],
    [['/{a}.{b}'], '/x.y.z', '/{a}.{b}'],
    [['/{a}.{b}'], '/.x', 'unlisted'],
    [['/{a}'], '/', 'unlisted'],
    [['/a%20b'], '/a%20b', '/a%20b'],
    [['/a b'], '/a%20b', '/a b'],
    [['/{a}'], '/x%2Fy', '/{a}'],
    [['/{a}/b'], '/x%2Fb', 'unlisted'],
    [['/a:b', '/{c}'], '/a%3Ab', '/a:b'],
    [['/{a}'], '/..', 'refused'],
    [['/{a}'], '/%2e%2e%2fx', 'refused'],
    [['/{a}'], '/%zz', 'refused'],
    [['/{a}'], '/%FF', 'refused'],
    [['/{a}'], '//x', 'unlisted'],
    [['/x?y=1'], '/x', '/x'],
  ]
  test.each(cases)('%j: %s is %s', (templates, path, expected) => {
    expect(templateOf(templates, path)).toBe(expected)
  })
})

describe('a small body cannot take long to check', () => {
  const timed = (document: object, content: string): readonly [string, boolean] => {
    const service = described(document)
    // Not the time that other programs take meanwhile.
    const before = process.cpuUsage()
    const { kind } = service.validate({ method: 'POST', content, headers: json })
    return [kind, process.cpuUsage(before).user < 2_000_000]
  }

  test('with alternatives that contain one another, each level would double the work', () => {
    const branch = (kind: string) => ({
      properties: { below: { $ref: '#/components/schemas/Tree' }, kind: { const: kind } },
      required: ['kind'],
    })
    const components = { schemas: { Tree: { type: 'object', oneOf: [branch('a'), branch('b')] } } }
    const document = onePost({ $ref: '#/components/schemas/Tree' }, '3.1.0', { components })
    const nested = (depth: number) =>
      `${'{"below":'.repeat(depth)}{"kind":"b"}${',"kind":"b"}'.repeat(depth)}`
    expect(timed(document, nested(10))).toEqual(['valid', true])
    expect(timed(document, nested(24))).toEqual(['invalid', true])
  })

  test('with a list whose items must differ, it is not compared item by item', () => {
    const document = onePost({ type: 'array', uniqueItems: true })
    const items = Array.from({ length: 50_000 }, (_, index) => `[${index}]`)
    expect(timed(document, `[${items.join()}]`)).toEqual(['valid', true])
    expect(timed(document, `[${items.join()},[ 7 ]]`)).toEqual(['invalid', true])
    expect(timed(document, '[{"a":1,"b":2},{"b":2,"a":1}]')).toEqual(['invalid', true])
    expect(timed(document, '[1,"1",true,"true",null,"null"]')).toEqual(['valid', true])
  })

  test('with lists inside of one another whose items must differ, the work for all levels is bounded', () => {
    const components = {
      schemas: {
        Tree: { type: ['array', 'integer'], uniqueItems: true, items: { $ref: '#/components/schemas/Tree' } },
      },
    }
    const document = onePost({ $ref: '#/components/schemas/Tree' }, '3.1.0', { components })
    const nested = (depth: number, count: number) =>
      `${'['.repeat(depth)}${Array.from({ length: count }, (_, index) => index).join()}${']'.repeat(depth)}`
    expect(timed(document, nested(20, 1_000))).toEqual(['valid', true])
    const service = described(document)
    expect(service.validate({ method: 'POST', content: nested(60, 120_000), headers: json })).toMatchObject({
      body: { errors: [{ detail: 'takes too long to check' }] },
    })
  })

  test.each([
    ['short integers', '1,'.repeat(2_000)],
    ['long integers', '111111111111111111,'.repeat(2_000)],
    ['lists', '[[],{}],'.repeat(2_000)],
  ])('with %s below a long name, the name is not written for each of them', (_title, items) => {
    const document = onePost({ type: 'object', additionalProperties: { type: 'array' } })
    expect(
      described(document).validate({
        method: 'POST',
        content: `{"${'n'.repeat(20_000)}":[${items}111111111111111111]}`,
        headers: json,
      }),
    ).toMatchObject({ body: { errors: [{ detail: 'has too many values under long names' }] } })
  })

  test.each([
    [
      'schemas',
      { oneOf: Array.from({ length: 30 }, (_, index) => ({ properties: { kind: { const: index } } })) },
    ],
    [
      'objects',
      { allOf: Array(3).fill({ enum: Array.from({ length: 30 }, (_, index) => ({ kind: index })) }) },
    ],
  ])('with many alternatives that are %s, each is one step', (_, items) => {
    const document = onePost({ type: 'array', items })
    const list = (length: number) => `[${Array.from({ length }, () => '{"kind":29}').join()}]`
    expect(timed(document, list(5_000))).toEqual(['valid', true])
    expect(
      described(document).validate({ method: 'POST', content: list(80_000), headers: json }),
    ).toMatchObject({
      body: { errors: [{ detail: 'takes too long to check' }] },
    })
  })

  test('a long name, and many values below short names, are no fault', () => {
    const document = onePost({ additionalProperties: { items: { type: 'integer', format: 'int64' } } })
    const items = Array.from({ length: 2_000 }, (_, index) => `12345678901234${1000 + index}`).join()
    expect(timed(document, `{"${'n'.repeat(20_000)}":[1,2,3],"measurements of a day":[${items}]}`)).toEqual([
      'valid',
      true,
    ])
  })
})
