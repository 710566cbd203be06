import { isJsonObject, type JsonText, nestingDepth, parsedJson } from '../http/json-text.ts'
import type { BatchEntry, BatchEnvelope } from './envelope.ts'
import {
  itemIdPattern,
  mostTemplateDepth,
  type PathTemplate,
  pathSegment,
  pathTemplate,
  type Reference,
  referencesIn,
  valuesAt,
  withValues,
} from './extensions/json-references.ts'
import {
  type BatchItem,
  type Dialect,
  type Dispatch,
  type ItemAnswer,
  type ItemError,
  itemError,
  shapedError,
} from './item.ts'

export type ExtensionsMode = 'off' | 'on-request' | 'on'

export type ItemExtension = {
  readonly id: string | undefined
  /** Earlier items that must have succeeded. */
  readonly needs: readonly number[]
  /** Path and body with references still in them; undefined where there are none. */
  readonly template:
    | {
        readonly path: PathTemplate
        readonly body: string | undefined
        readonly references: readonly Reference[]
      }
    | undefined
  readonly service: string | undefined
}

export const isExtended = (mode: ExtensionsMode, envelope: unknown): boolean =>
  mode === 'on' || (mode === 'on-request' && isJsonObject(envelope) && envelope['extensions'] === true)

class Faulty extends Error {}

const idOf = ({ id }: BatchEntry, at: number, ids: ReadonlyMap<string, number>) => {
  if (id === undefined) return undefined
  if (!itemIdPattern.test(id)) {
    throw new Faulty(`requests[${at}][id] must be a letter and up to 63 letters, digits, "_" or "-".`)
  }
  if (ids.has(id)) throw new Faulty(`requests[${at}][id] is the id of requests[${ids.get(id)}] as well.`)
  return id
}

/** Only what stands before can be named, and so there are no cycles. */
const positionOf = (id: string, place: string, ids: ReadonlyMap<string, number>): number => {
  const position = ids.get(id)
  if (position === undefined) throw new Faulty(`${place} must name earlier items.`)
  return position
}

const serviceOf = ({ service }: BatchEntry, at: number, services: readonly string[]) => {
  if (service === undefined || services.includes(service)) return service
  throw new Faulty(`requests[${at}][service] is not a service that batches may call.`)
}

/** Of one item, in its path and its body together. */
const mostReferences = 32

const templateOf = (
  entry: BatchEntry,
  at: number,
  bodyText: string | undefined,
): ItemExtension['template'] => {
  const path = pathTemplate(entry.path)
  if (path === undefined) throw new Faulty(`requests[${at}][path]: a reference must be a whole segment.`)
  const inBody = bodyText === undefined ? [] : referencesIn(bodyText)
  if (inBody === 'malformed') {
    throw new Faulty(`requests[${at}][body]: a $ref must be like "id#/body/name".`)
  }
  if (inBody === 'too-deep') {
    throw new Faulty(
      `requests[${at}][body] must be nested at most ${mostTemplateDepth} levels deep, because it has a $ref.`,
    )
  }
  const references = [...path.filter((piece) => typeof piece !== 'string'), ...inBody]
  if (references.length > mostReferences) {
    throw new Faulty(`requests[${at}] must have at most ${mostReferences} references.`)
  }
  return references.length === 0 ? undefined : { path, body: bodyText, references }
}

/** Reads the extensions of an envelope, or gives their fault; `bodyText` gives the JSON of an item's body. Pure. */
export const readExtensions = (
  envelope: BatchEnvelope,
  services: readonly string[],
  bodyText: (index: number) => string | undefined,
): { readonly dryRun: boolean; readonly items: readonly ItemExtension[] } | string => {
  const ids = new Map<string, number>()
  try {
    const items = envelope.requests.map((entry, at): ItemExtension => {
      const id = idOf(entry, at, ids)
      const template = templateOf(entry, at, bodyText(at))
      const referred = (template?.references ?? []).map((one) =>
        positionOf(one.id, `A reference of requests[${at}]`, ids),
      )
      const needed = entry.dependsOn?.map((one) => positionOf(one, `requests[${at}][dependsOn]`, ids)) ?? []
      const needs = [...new Set([...needed, ...referred])]
      if (id !== undefined) ids.set(id, at)
      return { id, needs, template, service: serviceOf(entry, at, services) }
    })
    return { dryRun: envelope.dryRun === true, items }
  } catch (thrown) {
    if (thrown instanceof Faulty) return thrown.message
    throw thrown
  }
}

const mostValueCharacters = 64 * 1024
const mostValueDepth = 32

class Unresolved extends Error {}

/**
 * Replaces references by the values that `findValue` gives for them, each as it stands in the answer; undefined when a value is not
 * there, or cannot stand where it should. Pure.
 */
export const resolveItem = (
  template: NonNullable<ItemExtension['template']>,
  findValue: (reference: Reference) => JsonText | undefined,
  mostBodyCharacters: number,
): { readonly path: string; readonly body: string | undefined } | undefined => {
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
    return { path: template.path.map(segment).join(''), body }
  } catch (thrown) {
    if (thrown instanceof Unresolved) return undefined
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
  const text = content.toString().trim()
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
    if (resolved === undefined) return itemError('unresolved_reference')
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
