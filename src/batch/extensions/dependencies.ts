import { type JsonText, nestingDepth, parsedJson } from '../../http/json-text.ts'
import type { ItemExtension } from '../extensions.ts'
import {
  type BatchItem,
  type Dialect,
  type Dispatch,
  type ItemAnswer,
  type ItemError,
  itemError,
  shapedError,
} from '../item.ts'
import { pathSegment, type Reference, valuesAt, withValues } from './json-references.ts'

/** An item whose references have been replaced by values. */
type ResolvedItem =
  | { readonly kind: 'resolved'; readonly path: string; readonly body: string | undefined }
  /** A value is not there, or cannot stand where it should. */
  | { readonly kind: 'unresolved' }

/** Bounds on the value of a reference. */
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
    if (characters > mostBodyCharacters || nestingDepth(value) > mostValueDepth) throw new Unresolved()
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

type Pointer = Reference['pointer']

/** The outcome of an item that others need: whether it succeeded, and the values in its answer that they refer to. */
type Known = {
  readonly succeeded: boolean
  readonly valueAt: ((pointer: Pointer) => string | undefined) | undefined
}

type DependencyOptions = {
  readonly extensions: readonly ItemExtension[]
  /** Route match and validation of an item whose references have become values. */
  admitted(index: number, path: string, body: string | undefined): BatchItem | ItemError
  readonly mostBodyCharacters: number
  readonly dialect: Dialect
}

/** A response that the gateway made, in the form of one from the upstream. */
const asAnswer = ({ status, body, fields }: ItemError): ItemAnswer => ({
  status,
  fields,
  content: Buffer.from(JSON.stringify(body)),
})

/** `{"body":…,"status":…}`, the JSON that references point into; undefined when the answer is no JSON. */
const referable = ({ content, status }: ItemAnswer): string | undefined => {
  const text = content
    .toString()
    .replace(/^\ufeff/, '')
    .trim()
  return parsedJson(text) === undefined ? undefined : `{"body":${text},"status":${status}}`
}

/**
 * Runs an item that depends on others only after they have succeeded, with their values in place of
 * its references. The caller must have waited for the items it needs.
 */
export const withDependencies = (dispatch: Dispatch, options: DependencyOptions): Dispatch => {
  const { extensions } = options
  const positions = new Map(extensions.flatMap(({ id }, at) => (id === undefined ? [] : [[id, at] as const])))
  const needed = new Set(extensions.flatMap(({ needs }) => needs))
  const known = new Map<number, Known>()

  const positionOf = (id: string): number => positions.get(id) ?? -1
  const pointersInto = new Map<number, Pointer[]>()
  for (const { id, pointer } of extensions.flatMap(({ template }) => template?.references ?? [])) {
    const pointers = pointersInto.get(positionOf(id))
    if (pointers === undefined) pointersInto.set(positionOf(id), [pointer])
    else pointers.push(pointer)
  }
  /** All values of an answer that anything refers to are looked up at once: one pass, however many there are. */
  const valuesOf = (index: number, answer: ItemAnswer): Known['valueAt'] => {
    const pointers = pointersInto.get(index)
    const text = pointers === undefined ? undefined : referable(answer)
    return text === undefined || pointers === undefined ? undefined : valuesAt(text, pointers)
  }

  const referring = (
    item: BatchItem,
    template: NonNullable<ItemExtension['template']>,
  ): BatchItem | ItemError => {
    const findValue = ({ id, pointer }: Reference): string | undefined =>
      known.get(positionOf(id))?.valueAt?.(pointer)
    const resolved = resolveItem(template, findValue, options.mostBodyCharacters)
    if (resolved.kind === 'unresolved') return itemError('unresolved_reference')
    return options.admitted(item.index, resolved.path, resolved.body)
  }

  const ready = (item: BatchItem): BatchItem | ItemError => {
    const extension = extensions[item.index]
    if (extension === undefined) return item
    const failed = extension.needs.some((index) => known.get(index)?.succeeded !== true)
    if (failed) return itemError('failed_dependency')
    return extension.template === undefined ? item : referring(item, extension.template)
  }

  return async (item, signal, stop) => {
    const request = ready(item)
    const answer =
      'status' in request
        ? asAnswer(shapedError(options.dialect, request))
        : await dispatch(request, signal, stop)
    if (needed.has(item.index)) {
      known.set(item.index, { succeeded: answer.status < 400, valueAt: valuesOf(item.index, answer) })
    }
    return answer
  }
}
