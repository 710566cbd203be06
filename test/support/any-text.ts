import fc from 'fast-check'

const surrogates = { first: 0xd800, count: 0x800 }

/** Any character, also the rarest: what `unit: 'binary'` has, for which fast-check builds a table of a million in every process. */
const character = fc.integer({ min: 0, max: 0x10ffff - surrogates.count }).map(
  (at) => String.fromCodePoint(at < surrogates.first ? at : at + surrogates.count),
  (one) => {
    const point = typeof one === 'string' ? one.codePointAt(0) : undefined
    if (point === undefined || String.fromCodePoint(point) !== one) throw new Error('not one character')
    return point < surrogates.first ? point : point - surrogates.count
  },
)

export const anyText = (constraints: { readonly maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ ...constraints, unit: character })
