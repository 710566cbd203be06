import { getIntrospectionQuery } from 'graphql'
import { describe, expect, test } from 'vitest'
import { Documents, readDocument } from '../../../src/graphql/document.ts'
import { cost } from '../../support/cost.ts'

const limits = { maxDepth: 15, maxAliases: 50, maxTokens: 2_000, maxBytes: 65_536, introspection: true }

const codeOf = (text: string, more: Partial<typeof limits> = {}): string => {
  const reading = readDocument(text, { ...limits, ...more })
  return reading.kind === 'refused' ? reading.code : reading.kind
}

const textOf = (text: string): string => {
  const reading = readDocument(text, limits)
  return reading.kind === 'parsed' ? reading.text : reading.kind
}

/** Fragments of which each spreads the next one `times`: the size of what is executed grows exponentially. */
const chain = (length: number, selection: (next: string) => string): string =>
  `{ ...F0 } ${Array.from({ length }, (_, at) => `fragment F${at} on Query { ${at === length - 1 ? 'a' : selection(`...F${at + 1}`)} }`).join(' ')}`

describe('the text of a document', () => {
  test.each([
    ['{ a b }', '{a,b,}'],
    ['query Q { a } # mutation', '# c\nquery   Q{a}'],
    [
      '{ ...B ...A } fragment A on Q { a } fragment B on Q { b }',
      'fragment B on Q { b } fragment A on Q { a } { ...B ...A }',
    ],
    ['{ a(b: """\n  x\n""") }', '{a(b:"""x""")}'],
  ])('%j is the same as %j', (one, other) => expect(textOf(one)).toBe(textOf(other)))

  test.each([
    ['{ a(b: "x y") }', '{ a(b: "x  y") }'],
    ['{ a(b: 1) }', '{ a(b: 1.0) }'],
    ['{ a(b: "#c") }', '{ a(b: "") }'],
    ['{ a b }', '{ b a }'],
    ['query A { a } query B { b }', 'query B { b } query A { a }'],
  ])('%j is another than %j', (one, other) => expect(textOf(one)).not.toBe(textOf(other)))

  test.each([
    '',
    '{',
    'type A { b: C }',
    'extend type A { b: C }',
    'fragment F on Q { a }',
    '{ a } mutation',
  ])('%j cannot be executed', (text) => expect(codeOf(text)).toBe('unparsable'))

  test.each([
    '{ a } query B { b }',
    'query A { a } query A { b }',
    '{ ...F } fragment F on Q { a } fragment F on Q { b }',
  ])('%j is ambiguous', (text) => expect(readDocument(text, limits)).toMatchObject({ isAmbiguous: true }))
})

describe('a document', () => {
  test('for introspection keeps within the default limits', () => {
    expect(codeOf(getIntrospectionQuery())).toBe('parsed')
    expect(codeOf(getIntrospectionQuery(), { introspection: false })).toBe('introspection_refused')
    expect(codeOf('{ __typename }', { introspection: false })).toBe('parsed')
  })

  test.each([
    ['of nested fields', `${'{a'.repeat(600)}${'}'.repeat(600)}`, 'document_too_deep'],
    ['of nested inline fragments', `${'{...'.repeat(600)}{a}${'}'.repeat(600)}`, 'document_too_deep'],
    ['of a fragment that spreads itself', '{ ...F } fragment F on Q { a { ...F } }', 'document_too_deep'],
    [
      'of fragments in a circle',
      '{ a } fragment F on Q { ...G } fragment G on Q { ...F }',
      'document_too_deep',
    ],
    [
      'of aliases that fragments multiply',
      chain(12, (next) => `x: b { ${next} } y: b { ${next} }`),
      'too_many_aliases',
    ],
    [
      'of fields that fragments multiply',
      chain(20, (next) => `b { ${next} } c { ${next} }`),
      'document_too_deep',
    ],
    ['of many fields', `{${' a'.repeat(2_000)}}`, 'too_many_tokens'],
    ['of a block string of many lines', `{a(x:"""${'\n y'.repeat(3_000)}""")}`, 'too_many_tokens'],
    ['of nested lists', `{a(x:${'['.repeat(3_000)}`, 'too_many_tokens'],
    ['of a long comment', `{a}#${'x'.repeat(70_000)}`, 'document_too_large'],
    ['of many octets in few characters', `{a}#${'\u{1F600}'.repeat(20_000)}`, 'document_too_large'],
  ])('%s is refused', (_, text, code) => expect(codeOf(text)).toBe(code))

  test('of fragments that are spread often, but in a line, is read', () => {
    expect(codeOf(chain(100, (next) => next))).toBe('parsed')
  })
})

/** The most expensive texts within the limits, and beyond them. */
const costly: readonly (readonly [string, string])[] = [
  ['64 KiB of fields', `{${' a'.repeat(32_000)}}`],
  ['64 KiB of a string', `{a(x:"${'y'.repeat(65_000)}")}`],
  ['64 KiB of a block string', `{a(x:"""${'\n y'.repeat(20_000)}""")}`],
  ['64 KiB of comments', `{a}${'#\n'.repeat(32_000)}`],
  ['64 KiB of parentheses', '('.repeat(65_000)],
  ['nested fields', `${'{a'.repeat(660)}${'}'.repeat(660)}`],
  ['nested inline fragments', `${'{...'.repeat(330)}{a}${'}'.repeat(330)}`],
  ['nested lists', `{a(x:${'['.repeat(900)}${']'.repeat(900)})}`],
  ['fragments that multiply', chain(180, (next) => `x: b { ${next} } y: b { ${next} }`)],
  ['fragments in a circle', chain(180, (next) => next).replace(/\{ a \}$/, '{ ...F0 }')],
  [
    'many fragments',
    `{ a } ${Array.from({ length: 250 }, (_, at) => `fragment F${at} on Q { a }`).join(' ')}`,
  ],
  ['many variables', `query (${Array.from({ length: 300 }, (_, at) => `$v${at}: Int`).join(' ')}) { a }`],
]

describe('a document costs at most 5 ms', () => {
  test.each(costly)('%s', (_, text) => {
    expect(cost(() => readDocument(text, limits), 5)).toBeLessThan(5)
  })
})

describe('remembered documents', () => {
  const documents = new Documents({ ...limits, persisted: true })
  test('are read once', () => {
    expect(documents.read('{ a }')).toBe(documents.read('{ a }'))
  })

  test('of 64 KiB are read once, whatever the requests ask of them', () => {
    const text = `query ($v: Int) { a(x: $v, y: "${'z'.repeat(65_000)}") }`
    expect(documents.read(text)).toMatchObject({ kind: 'parsed' })
    // Another string with the same text, as in another request.
    expect(documents.read(JSON.parse(JSON.stringify(text)) as string)).toBe(documents.read(text))
  })

  test('are forgotten when clients invent others', () => {
    const first = documents.read('{ a }')
    const long = ' '.repeat(20_000)
    for (let i = 0; i < 500; i += 1) documents.read(`${long}{ a${i} }`)
    expect(documents.read('{ a }')).not.toBe(first)
  })
})
