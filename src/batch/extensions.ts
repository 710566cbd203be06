import { isJsonObject } from '../http/json-text.ts'
import {
  itemIdPattern,
  mostTemplateDepth,
  type PathTemplate,
  pathTemplate,
  type Reference,
  referencesIn,
} from './extensions/json-references.ts'

/** Whether batches may use extensions. */
export type ExtensionsMode = 'off' | 'on-request' | 'on'

/** The extensions of an item. */
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
  /** Name of another service that is meant. */
  readonly service: string | undefined
}

/** The extensions of a batch, or their error. */
type ReadExtensions =
  | { readonly kind: 'extensions'; readonly dryRun: boolean; readonly items: readonly ItemExtension[] }
  | { readonly kind: 'faulty'; readonly message: string }

/** Does the batch use extensions? */
export const isExtended = (mode: ExtensionsMode, envelope: unknown): boolean =>
  mode === 'on' || (mode === 'on-request' && isJsonObject(envelope) && envelope['extensions'] === true)

class Faulty extends Error {}

const idOf = (entry: Record<string, unknown>, at: number, ids: ReadonlyMap<string, number>) => {
  const id = entry['id']
  if (id === undefined) return undefined
  if (typeof id !== 'string' || !itemIdPattern.test(id)) {
    throw new Faulty(`requests[${at}][id] must be a letter and up to 63 letters, digits, "_" or "-".`)
  }
  if (ids.has(id)) throw new Faulty(`requests[${at}][id] is the id of requests[${ids.get(id)}] as well.`)
  return id
}

/** Only what stands before can be named, and so there are no cycles. */
const positionOf = (id: unknown, place: string, ids: ReadonlyMap<string, number>): number => {
  const position = typeof id === 'string' ? ids.get(id) : undefined
  if (position === undefined) throw new Faulty(`${place} must name earlier items.`)
  return position
}

const dependsOnOf = (entry: Record<string, unknown>, at: number, ids: ReadonlyMap<string, number>) => {
  const named = entry['dependsOn'] ?? []
  const place = `requests[${at}][dependsOn]`
  if (!Array.isArray(named)) throw new Faulty(`${place} is not of type array.`)
  return named.map((id) => positionOf(id, place, ids))
}

const serviceOf = (entry: Record<string, unknown>, at: number, services: readonly string[]) => {
  const name = entry['service']
  if (name === undefined) return undefined
  if (typeof name !== 'string' || !services.includes(name)) {
    throw new Faulty(`requests[${at}][service] is not a service that batches may call.`)
  }
  return name
}

/** Of one item, in its path and its body together. */
const mostReferences = 32

const templateOf = (
  entry: Record<string, unknown>,
  at: number,
  bodyText: string | undefined,
): ItemExtension['template'] => {
  const path = pathTemplate(typeof entry['path'] === 'string' ? entry['path'] : '')
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

/** Reads the extensions of an envelope; `bodyText` gives the JSON of an item's body. Pure. */
export const readExtensions = (
  envelope: Record<string, unknown>,
  services: readonly string[],
  bodyText: (index: number) => string | undefined,
): ReadExtensions => {
  const requests = Array.isArray(envelope['requests']) ? envelope['requests'] : []
  const ids = new Map<string, number>()
  try {
    const items = requests.map((request: unknown, at): ItemExtension => {
      const entry = isJsonObject(request) ? request : {}
      const id = idOf(entry, at, ids)
      const template = templateOf(entry, at, bodyText(at))
      const referred = (template?.references ?? []).map((one) =>
        positionOf(one.id, `A reference of requests[${at}]`, ids),
      )
      const needs = [...new Set([...dependsOnOf(entry, at, ids), ...referred])]
      if (id !== undefined) ids.set(id, at)
      return { id, needs, template, service: serviceOf(entry, at, services) }
    })
    return { kind: 'extensions', dryRun: envelope['dryRun'] === true, items }
  } catch (thrown) {
    if (thrown instanceof Faulty) return { kind: 'faulty', message: thrown.message }
    throw thrown
  }
}
