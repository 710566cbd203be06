import { type Document, isAlias, isMap, isScalar, isSeq, type LineCounter, type Node } from 'yaml'
import type { Path, Position } from './fault.ts'

const firstPosition: Position = { line: 1, column: 1 }

type KeyAndValue = { readonly key: Node | undefined; readonly value: Node | undefined }

export const asNode = (node: unknown): Node | undefined => (node as Node | null) ?? undefined

/** The key and the value one step down. */
const childAt = (
  node: Node | undefined,
  step: string | number,
  document: Document,
): KeyAndValue | undefined => {
  const real = isAlias(node) ? node.resolve(document) : node
  if (isSeq(real)) {
    const item = asNode(real.items[Number(step)])
    return item === undefined ? undefined : { key: item, value: item }
  }
  if (!isMap(real)) return undefined
  const pair = real.items.find(({ key }) => isScalar(key) && String(key.value) === step)
  return pair === undefined ? undefined : { key: asNode(pair.key), value: asNode(pair.value) }
}

/** Finds positions in a parsed document. */
export const documentLocator =
  (document: Document, lines: LineCounter) =>
  (path: Path, at: 'key' | 'value'): Position => {
    let deepest: KeyAndValue = { key: asNode(document.contents), value: asNode(document.contents) }
    let complete = true
    for (const step of path) {
      const next = childAt(deepest.value, step, document)
      if (next === undefined) {
        complete = false
        break
      }
      deepest = next
    }
    const node = at === 'value' && complete ? (deepest.value ?? deepest.key) : deepest.key
    const offset = node?.range?.[0]
    if (offset === undefined) return firstPosition
    const { line, col } = lines.linePos(offset)
    return { line, column: col }
  }
