import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseDocument, stringify } from 'yaml'
import { readBlockYaml } from '../../../src/config/load/block-yaml.ts'
import { times } from '../../support/breadth.ts'

/** What the parser for all of YAML reads; undefined for a fault. */
const parsed = (text: string): { readonly value: unknown } | undefined => {
  const document = parseDocument(text, { prettyErrors: false, merge: true, uniqueKeys: true })
  if (document.errors.length > 0) return undefined
  try {
    return { value: document.toJS({ maxAliasCount: 10_000 }) }
  } catch {
    return undefined
  }
}

const sample = `---
openapi: 3.0.3 # a version
info:
  title: It's a title, with {braces} and [brackets]
  description: A long text that a program
    has folded

    into two paragraphs
  "quoted": "a \\"b\\" \\u00e9
    folded"
  'single': 'it''s
    folded'
servers:
- url: https://a.example:8080/x#y
  variables: {}
-   url: "-"
paths:
  /a/{b}:
    get: &op
      tags: []
      parameters:
        - - nested
          - list
        -
          name: x
        - &item plain
        - *item
      responses:
        '200':
          text: |
            one
              two

            three
          stripped: |-
            - a: b
          kept: >+
            folded
            text

              more

          given: >2
                deep
              less
        404: *item
    # a comment
    put: *op
numbers: [] 
values:
  - 1
  - -1.50
  - 1e3
  - 007
  - ~
  - null
  - Yes
  - true
  - 12:30
  - -
  - 2020-01-01
empty:
last: text
`

const odd = [
  'a: b: c',
  'a: b:',
  'a: - b',
  'a:\n- b\n- c\nd: e',
  'a:\n  - b\n - c',
  'a: b\n c',
  'a: b\n c: d',
  'a: b # x\n c',
  'a: b\n# x\n c',
  'a: b\n\n\n c\n\nd: e',
  'a: "b\nc"',
  'a: "b\n c" d',
  "a: 'b\n\n c'",
  'a: |\n b\n  c\nd: e',
  'a: |\nb: c',
  'a: |\n\n\nb: c',
  'a: |+\n b\n\n\nc: d',
  'a: >-\n b\n c\n\n d\n   e\n f',
  'a: |\n   \n b',
  'a: |\n  b\n c',
  'a: |1\n  b',
  'a: |  \n b',
  'a: | # c\n b',
  '- a: |\n   b\n- c',
  '- |\n b\n- >-\n  c\n  d',
  '- >2\n    a\n   b\n',
  '- - >1\n    a\n',
  '- a\n b',
  'a: 1\na: 2',
  '"a": 1\na: 2',
  '1: a\n"1": b',
  '? a\n: b',
  '<<: { a: 1 }',
  '__proto__: 1',
  'a: &x 1\nb: *x',
  'a: &x\n  b: 1\nc: *x',
  'a: &x\nb: *x',
  'a: *x',
  '&x a: 1',
  'a: &x &y 1',
  'a: &x *x',
  'a: !!str 1',
  'a: 9007199254740993',
  'a: 1.\nb: .5\nc: +1\nd: -0\ne: 1_000',
  'a: .inf\nb: .NaN',
  'a: 0o7\nb: 0x1F\nc: 08',
  'a: [b, c]',
  'a: {}\nb: []',
  'a: [] # x',
  'a: []\n  b: 1',
  'a:\tb',
  'a: b\tc',
  'a: b\t# c',
  '\ta: b',
  'a:\n\tb: c',
  'a: b \n',
  'a : b',
  'a#b: c',
  'a #b: c',
  'a: #b',
  'a: b#c',
  'a:b',
  'a:b: c',
  ':a: b',
  '-a: b',
  '?a: b',
  '- ',
  '-',
  '- -',
  '-\n-',
  '- a: b\n  c: d\n -',
  '- # x\n  a: b',
  'a:\n  # x\n  b: c\n# y\nd: e',
  'a:\n    b: c\n  d: e',
  'a:\n  b: c\n    d: e',
  '%YAML 1.1\n---\na: b',
  '--- a: b',
  '--- \na: b',
  'a: b\n---\nc: d',
  'a: b\n...',
  'a: "\\x41\\u00e9\\n"',
  'a: "\\q"',
  "a: 'b' 'c'",
  '"a" : b',
  '"a"b: c',
  'a: "b": c',
  "a: 'b': c",
  '"a\nb": c',
  'a: @b',
  'a: `b',
  'a: %b',
  'a: ,b',
  'a: >b',
  'a: |b',
  'a: "b',
  'a',
  '"a"',
  '',
  '# x',
  'a: b\r\nc: d',
  '\ufeffa: b',
  'a: b\u0085c',
  'a: b\u2028c',
  'a: é\nß: 😀',
  'true: a\nnull: b\n~: c\n1.0: d',
  'a: ""\nb: \'\'',
  'a: "b"   \nc: d',
  'a: b  #c',
  'a: b\n ---\nc: d',
  'a: "b\n---\n c"',
  'a:\n -b\n - c',
  'a: b\n - c',
  'a:\n  b\n  c\nd: e',
  'a:\n  "b\n  c"\nd: e',
  'a:\n  b: c\n  d',
  'a:\n  |\n  b',
  '- |\n- b',
  'a: =\nb: ===',
  'a: - \nb: c',
]

describe('YAML in block style', () => {
  test.each(odd.map((text) => [JSON.stringify(text), text]))(
    '%s is read as by the parser for all of YAML, or left to it',
    (_shown, text) => {
      const read = readBlockYaml(text)
      if (read !== undefined) expect(read).toEqual(parsed(text))
    },
  )

  test('a text as programs write it is read', () => {
    expect(parsed(sample)).toBeDefined()
    expect(readBlockYaml(sample)).toEqual(parsed(sample))
  })

  test('whatever a text becomes by chance, it is read as by the parser for all of YAML, or left to it', () => {
    const pieces = [
      ...'-:#&*!|>\'"%@`[]{}?,~ \n\t0a\\',
      '\n\n',
      '  ',
      ': ',
      '- ',
      ' #',
      '"\n',
      '\n  ',
      '...',
      '---',
    ]
    const change = fc.tuple(fc.nat(sample.length), fc.nat(4), fc.constantFrom('', ...pieces))
    let read = 0
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
        const text = changes.reduce(
          (all, [at, cut, piece]) => all.slice(0, at) + piece + all.slice(at + cut),
          sample,
        )
        const found = readBlockYaml(text)
        if (found === undefined) return
        read += 1
        expect(found).toEqual(parsed(text))
      }),
      { numRuns: Number(process.env['BLOCK_YAML'] ?? times(1_000, 10_000)) },
    )
    expect(read).toBeGreaterThan(100)
  })

  const leaf = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'ab \n:#-?\'"{}[]&*!|>%@\\,.0é'), maxLength: 40 }),
    fc.lorem({ maxCount: 40 }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.constantFrom(
      '',
      '~',
      'null',
      '1',
      '1e3',
      'true',
      '0x1',
      '2020-01-01',
      '<<',
      '- a',
      'a: b',
      ' a',
      'a\n',
      '\n',
    ),
  )
  const key = fc.string({ unit: fc.constantFrom(...'abc/{}$.-1 :'), minLength: 1, maxLength: 8 })
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  }))

  test.each([
    ['as it is by default', {}],
    ['in narrow lines', { lineWidth: 20 }],
    ['with lists that are not indented', { indentSeq: false }],
    ['with quotes', { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' }],
    ['with single quotes in narrow lines', { singleQuote: true, blockQuote: false, lineWidth: 20 }],
    ['with literal blocks', { blockQuote: 'literal', indent: 4 }],
  ] as const)('what the library writes %s is read again', (_title, options) => {
    let [read, all] = [0, 0]
    fc.assert(
      fc.property(
        fc.dictionary(key, value, { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
        (document) => {
          const text = stringify(document, options)
          const found = readBlockYaml(text)
          all += 1
          if (found === undefined) return
          read += 1
          expect(found).toEqual(parsed(text))
        },
      ),
      { numRuns: Number(process.env['BLOCK_YAML'] ?? times(200, 2_000)) },
    )
    expect(read).toBeGreaterThan(all / 2)
  })
})
