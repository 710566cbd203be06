/** Why one value is refused, in WordPress's words: `code`, text, and what its `details` carry in `data`. */
export type Issue = {
  readonly code: string
  readonly message: string
  readonly data: Readonly<Record<string, unknown>> | null
}

/** An issue without further data. */
export const issueOf = (code: string, message: string): Issue => ({ code, message, data: null })

/** The value has another type than the schema says. */
export const wrongType = (path: string, type: string): Issue => ({
  code: 'rest_invalid_type',
  message: `${path} is not of type ${type}.`,
  data: { param: path },
})

/** "a", "a and b", "a, b, and c": the list form of the fixed English texts. */
export const listInWords = (words: readonly string[]): string => {
  if (words.length < 2) return words[0] ?? ''
  if (words.length === 2) return `${words[0]} and ${words[1]}`
  return `${words.slice(0, -1).join(', ')}, and ${words.at(-1)}`
}

/** A count as the texts write it: thousands separated, the noun in its number. */
export const countOf = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? noun : plural}`
