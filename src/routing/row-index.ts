import type { Row } from '../contracts/row.ts'
import { compileRowPattern, type PatternRefusal, type RowPattern } from './row-pattern.ts'

export type IndexedRow = { readonly row: Row; readonly order: number; readonly pattern: RowPattern }

/** Why a row is not matched: its pattern, or too many rows that must each be run on every path. */
type SkipReason = PatternRefusal | 'too-many-ambiguous'

export type SkippedRow = { readonly row: Row; readonly reason: SkipReason }

export type RowIndex = {
  /** Rows whose literal beginning the path has, in the order of the table. `lower` is a cleaned path in lower case. */
  candidates(lower: string): readonly IndexedRow[]
  readonly skipped: readonly SkippedRow[]
}

/** Rows of one prefix whose patterns leave several ways open. The contract has five; a foreign document must not add hundreds. */
const maxAmbiguousPerPrefix = 16

const add = (lists: Map<string, IndexedRow[]>, key: string, row: IndexedRow): void => {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [row])
  else list.push(row)
}

const slashes = (text: string): number => text.split('/').length - 1

/** Indexes rows by their literal beginning, so that a path meets a handful of them and not the whole table. */
export const indexRows = (rows: readonly Row[]): RowIndex => {
  const literal = new Map<string, IndexedRow[]>()
  const byPrefix = new Map<string, IndexedRow[]>()
  const skipped: SkippedRow[] = []
  let deepest = 0

  rows.forEach((row, order) => {
    const pattern = compileRowPattern(row.pattern)
    if (pattern.kind === 'skipped') {
      skipped.push({ row, reason: pattern.reason })
      return
    }
    const indexed: IndexedRow = { row, order, pattern }
    if (pattern.isLiteral) {
      add(literal, pattern.prefix, indexed)
      return
    }
    const ambiguous = byPrefix.get(pattern.prefix)?.filter((other) => !other.pattern.isDeterministic) ?? []
    if (!pattern.isDeterministic && ambiguous.length >= maxAmbiguousPerPrefix) {
      skipped.push({ row, reason: 'too-many-ambiguous' })
      return
    }
    deepest = Math.max(deepest, slashes(pattern.prefix))
    add(byPrefix, pattern.prefix, indexed)
  })

  const candidates = (lower: string): readonly IndexedRow[] => {
    const found = [...(literal.get(lower) ?? [])]
    let end = 0
    for (let depth = 0; depth < deepest; depth++) {
      end = lower.indexOf('/', end) + 1
      if (end === 0) break
      found.push(...(byPrefix.get(lower.slice(0, end)) ?? []))
    }
    return found.sort((a, b) => a.order - b.order)
  }

  return { candidates, skipped }
}
