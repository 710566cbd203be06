import type { ItemExtension } from './extensions.ts'
import type { BatchItem, Dispatch, ItemAnswer } from './item.ts'
import { type ItemError, itemError } from './item-error.ts'
import { type Reference, valuesAt } from './json-references.ts'
import { resolveItem } from './resolve-item.ts'

type Pointer = Reference['pointer']

/** What is kept of an item that others need: whether it succeeded, and the values in its answer that they refer to. */
type Known = {
  readonly succeeded: boolean
  readonly valueAt: ((pointer: Pointer) => string | undefined) | undefined
}

export type DependencyOptions = {
  readonly extensions: readonly ItemExtension[]
  /** Route match and validation of an item whose references have become values. */
  admitted(index: number, path: string, body: string | undefined): BatchItem | ItemError
  readonly mostBodyCharacters: number
}

/** An answer that the gateway made, in the form of one that came. */
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
  try {
    JSON.parse(text)
  } catch {
    return undefined
  }
  return `{"body":${text},"status":${status}}`
}

/**
 * Lets an item that depends on others run only when they have succeeded, with their values in the place of its
 * references. Whoever calls must have waited for the items it needs.
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
    const answer = 'status' in request ? asAnswer(request) : await dispatch(request, signal, stop)
    if (needed.has(item.index)) {
      known.set(item.index, { succeeded: answer.status < 400, valueAt: valuesOf(item.index, answer) })
    }
    return answer
  }
}
