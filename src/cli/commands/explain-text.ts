import type { Explanation } from '../../gateway/explain-sentences.ts'
import { printable, textTable } from '../texts.ts'

const maxListed = 12

const valueText = (value: unknown): string => {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.length === 0 ? '-' : listText(value.map(valueText))
  return value === undefined || value === null ? '-' : JSON.stringify(value)
}

const listText = (values: readonly string[]): string => {
  const more = values.length - maxListed
  return `${values.slice(0, maxListed).join(', ')}${more > 0 ? ` and ${more} more (--json prints all)` : ''}`
}

/** The words of a key: `cacheKey` is `cache key`. */
const wordsOf = (key: string): string => key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

/** What happens in sentences, then one line for each aspect. */
export const explanationText = ({ inWords, ...explanation }: Explanation): string => {
  const aspects = Object.entries(explanation).map(([aspect, value]) => [wordsOf(aspect), valueText(value)])
  const sentences = Array.isArray(inWords) ? inWords.map(String) : []
  return printable(`${sentences.length === 0 ? '' : `${sentences.join('\n')}\n\n`}${textTable(aspects)}`)
}
