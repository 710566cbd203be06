import { inflateRawSync } from 'node:zlib'

/** Kinds of ids, which are numbers. */
const idKinds: ReadonlySet<string> = new Set(['p', 't', 'd', 'u', 'c'])

/** Numbers of which each is written as the difference to the one before it. */
const summed = (differences: readonly string[]): readonly string[] => {
  let sum = 0
  return differences.map((difference) => {
    sum += /^\d{1,11}$/.test(difference) ? Number(difference) : Number.NaN
    // No id: the text counts as damaged.
    return Number.isNaN(sum) ? '' : String(sum)
  })
}

/** Lists that end in the number of what they belong to. */
const numberedLists = /^((?:k|h:comment|.+:(?:parent|author|relation)):)(\d+(?:\.\d+)*)$/

/** As in a text that is not packed: `k:5.2` are the lists `k:5` and `k:7`. */
export const unpackedValues = (kind: string, values: readonly string[]): readonly string[] => {
  if (idKinds.has(kind)) return summed(values)
  if (kind !== 'q') return values
  return values.flatMap((value) => {
    const [, beginning, numbers] = numberedLists.exec(value) ?? []
    return numbers === undefined
      ? [value]
      : summed(numbers.split('.')).map((number) => `${beginning}${number}`)
  })
}

/** A long text is packed: `v2;` and the deflated text of `v1` in base64, with differences for numbers; undefined when it is damaged. */
export const unpackedText = (text: string, maxBytes: number): string | undefined => {
  try {
    return inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: maxBytes }).toString('latin1')
  } catch {
    return undefined
  }
}
