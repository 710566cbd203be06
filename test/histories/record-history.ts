import { randomBytes } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { type HistoryLine, historyLine } from './history-line.ts'

/** Appends reads and writes to a file; records nothing without a file. */
export const recordHistory = (file: string | undefined): ((line: HistoryLine) => void) => {
  if (file === undefined || file === '') return () => undefined
  const run = randomBytes(4).toString('hex')
  return (line) => appendFileSync(file, historyLine({ ...line, key: `${run}/${line.key}` }))
}
