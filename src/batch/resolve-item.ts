import type { ItemExtension } from './extensions.ts'
import type { JsonText } from './json-parts.ts'
import { isDeeperThan, type Reference, valueAt, withValues } from './json-references.ts'
import { pathSegment } from './path-references.ts'

/** An item whose references have been replaced by values. */
export type ResolvedItem =
  | { readonly kind: 'resolved'; readonly path: string; readonly body: string | undefined }
  /** A value is not there, or cannot stand where it should. */
  | { readonly kind: 'unresolved' }

/** Bounds on what a reference may bring along. */
const mostValueCharacters = 64 * 1024
const mostValueDepth = 32

class Unresolved extends Error {}

/** Replaces references by what `answerOf` says of the items they name, each as the value that it is. Pure. */
export const resolveItem = (
  template: NonNullable<ItemExtension['template']>,
  answerOf: (id: string) => JsonText | undefined,
  mostBodyCharacters: number,
): ResolvedItem => {
  let characters = template.body?.length ?? 0
  const textOf = ({ id, pointer }: Reference): JsonText => {
    const value = valueAt(answerOf(id) ?? 'null', pointer)
    if (value === undefined || value.length > mostValueCharacters || isDeeperThan(value, mostValueDepth)) {
      throw new Unresolved()
    }
    characters += value.length
    if (characters > mostBodyCharacters) throw new Unresolved()
    return value
  }
  const segment = (piece: string | Reference): string => {
    if (typeof piece === 'string') return piece
    const text = pathSegment(textOf(piece))
    if (text === undefined) throw new Unresolved()
    return text
  }
  try {
    const body = template.body === undefined ? undefined : withValues(template.body, textOf)
    return { kind: 'resolved', path: template.path.map(segment).join(''), body }
  } catch (thrown) {
    if (thrown instanceof Unresolved) return { kind: 'unresolved' }
    throw thrown
  }
}
