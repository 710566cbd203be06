import type { ItemExtension } from './extensions.ts'
import { depthOf, type JsonText } from './json-parts.ts'
import { type Reference, withValues } from './json-references.ts'
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

/** Replaces references by the values that `findValue` gives for them, each as it stands in the answer. Pure. */
export const resolveItem = (
  template: NonNullable<ItemExtension['template']>,
  findValue: (reference: Reference) => JsonText | undefined,
  mostBodyCharacters: number,
): ResolvedItem => {
  let characters = template.body?.length ?? 0
  const textOf = (reference: Reference): JsonText => {
    const value = findValue(reference)
    if (value === undefined || value.length > mostValueCharacters) throw new Unresolved()
    characters += value.length
    if (characters > mostBodyCharacters || depthOf(value) > mostValueDepth) throw new Unresolved()
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
