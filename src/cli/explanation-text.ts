import type { Explanation } from './cli-ports.ts'
import { printable } from './printable.ts'
import { textTable } from './text-table.ts'

const valueText = (value: unknown): string => {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(valueText).join(', ')
  return value === undefined || value === null ? '-' : JSON.stringify(value)
}

/** One line an aspect. Control characters of the asked URL do not reach the terminal. */
export const explanationText = (explanation: Explanation): string =>
  printable(textTable(Object.entries(explanation).map(([aspect, value]) => [aspect, valueText(value)])))
