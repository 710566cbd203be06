import {
  createTagNames,
  invalidatedGroups,
  isReadable,
  type TaggedArguments,
  upstreamTags,
  type WriteResponse,
} from '../../cache/tagger.ts'
import { parsedJson } from '../../http/json-text.ts'
import type { Tagger } from '../../service/contract.ts'
import type { Found } from '../../service/row.ts'
import { decoded } from '../document/bundle.ts'
import { operationOf } from '../document/operation.ts'
import {
  parameterIn,
  prefixOf,
  type Resource,
  type Resources,
  segmentsOf,
  templateShape,
} from '../document/resources.ts'

const uuid = /^\{?[\da-f]{8}(?:-?[\da-f]{4}){3}-?[\da-f]{12}\}?$/

/**
 * One spelling for all that an upstream may take for the same id: `5`, `05` and `+5.0`, capitals, escapes, UUIDs with and without
 * hyphens. Two items that share it are invalidated together.
 */
const oneSpelling = (raw: string): string => {
  const text = decoded(raw).normalize('NFKC').trim().toLowerCase()
  if (uuid.test(text)) return text.replaceAll(/[{}-]/g, '')
  const value = text === '' ? Number.NaN : Number(text)
  return encodeURIComponent(
    Number.isFinite(value) ? String(value) : text.replaceAll(/\p{Surrogate}/gu, '\ufffd'),
  )
}

/** Ids of one kind differ for different items; an alias stands for some item of the collection. */
type KindOfId = 'number' | 'code' | 'name' | 'alias'

const kindsOfIds: readonly KindOfId[] = ['number', 'code', 'name', 'alias']

const aliases =
  /^(?:%40|%7e)?(?:me|self|my|mine|current|default|latest|newest|last|first|oldest|active|head|today|now|~)?$/

/** Of an id in its one spelling. */
const kindOf = (id: string): KindOfId => {
  if (/^-?[\d.]+(?:e[+-]?\d+)?$/.test(id)) return 'number'
  if (/^(?:[\da-f]{16,}|[\da-z]{26})$/.test(id)) return 'code'
  return aliases.test(id) ? 'alias' : 'name'
}

type IdValue = string | number

const isMember = (value: unknown): value is IdValue => typeof value === 'string' || typeof value === 'number'

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined

/** The values that a JSON Pointer (RFC 6901) leads to; `*` stands for each element of a list. */
const valuesAt = (value: unknown, steps: readonly string[]): readonly unknown[] => {
  const [step, ...others] = steps
  if (step === undefined) return [value]
  if (step !== '*') return valuesAt(memberOf(value, step.replaceAll('~1', '/').replaceAll('~0', '~')), others)
  return Array.isArray(value) ? value.flatMap((one) => valuesAt(one, others)) : [undefined]
}

/** Names that the id of an item has in responses: that of the parameter, its last word, `id`, `name`. */
const idNames = (parameter: string): readonly string[] => {
  const words = parameter.split(/[_-]|(?<=[a-z\d])(?=[A-Z])/)
  const last = words.at(-1) ?? ''
  return [...new Set([parameter, last, last.toLowerCase(), 'id', 'name'])]
}

const mostMembers = 128

/**
 * The ids of the items in a response; undefined when they are not all known. `parameter`: the name that paths give the id. An item with
 * several such members may have any of them as its id.
 */
const memberIds = (content: Buffer, pointer: string, parameter: string): readonly string[] | undefined => {
  const response = parsedJson(content.toString())
  if (response === undefined) return undefined
  const names = idNames(parameter)
  const items = valuesAt(response, pointer.split('/').slice(1))
    .filter((value) => value !== null)
    .map((value) => (isMember(value) ? [value] : names.map((name) => memberOf(value, name)).filter(isMember)))
  const ids = items.flat()
  return ids.length > mostMembers || items.some(({ length }) => length === 0) ? undefined : ids.map(String)
}

/** A path whose parameters have values, as far as they are known. */
type BoundPath = {
  readonly segments: readonly string[]
  /** Of each segment the one spelling of its text; undefined: it may be any. */
  readonly values: readonly (string | undefined)[]
}

/** Longer paths have no tags: every write invalidates their responses, and a write to them everything. */
const longestKey = 512

/** Parameters that add other resources to the same response. */
const embeds = /^(?:embed|expand|include|includes|join|populate|relations|with)$/i

const ownPath = ({ endpoint, row, path }: Found): BoundPath => {
  const segments = segmentsOf(operationOf(endpoint)?.template ?? row.template)
  return { segments, values: segmentsOf(path).map(oneSpelling) }
}

/** Of another path, with the values of the parameters that have the same names. */
const pathFrom = (template: string, { pathParameters }: Found): BoundPath => {
  const segments = segmentsOf(template)
  const values = segments.map((segment) => {
    const name = parameterIn(segment)
    if (name === undefined) return segment.includes('{') ? undefined : oneSpelling(segment)
    const value = Object.hasOwn(pathParameters, name) ? pathParameters[name] : undefined
    return value === undefined ? undefined : oneSpelling(value)
  })
  return { segments, values }
}

const startOf = ({ segments, values }: BoundPath, length: number): BoundPath => ({
  segments: segments.slice(0, length),
  values: values.slice(0, length),
})

const shapeAt = ({ segments }: BoundPath, length: number): string => templateShape(prefixOf(segments, length))

/** The path itself, or its shape where it may be one of several. */
const keyAt = (bound: BoundPath, length: number): string => {
  const values = bound.values.slice(0, length)
  return values.includes(undefined) ? shapeAt(bound, length) : `/${values.join('/')}`
}

const isTooLong = (bound: BoundPath): boolean => keyAt(bound, bound.segments.length).length > longestKey

const tagNames = (service: string) => ({
  ...createTagNames(service),
  within: (key: string) => `${service}/within${key}`,
  /** On the responses of a path, with all queries, and of its parts. */
  at: (key: string) => `${service}/at${key}`,
  /** On responses for a missing resource below a path. */
  absent: (key: string) => `${service}/absent${key}`,
  ofKind: (kind: KindOfId, key: string) => `${service}/ids/${kind}${key}`,
  showing: (collection: string) => `${service}/showing${collection}`,
  showingItem: (collection: string, id: string) => `${service}/showing${collection}#${id}`,
  showingOne: (collection: string) => `${service}/showing${collection}##`,
  /** On an item of a collection and all below it, under whichever path. */
  below: (collection: string, id: string) => `${service}/below${collection}#${id}`,
  belowOne: (collection: string) => `${service}/below${collection}##`,
})

type ResourceTagNames = ReturnType<typeof tagNames>

/** An item in a path, with its collection where declarations name that. */
type ItemInPath = {
  readonly collection: string
  readonly id: string | undefined
  /** Segments of the path up to its id. */
  readonly length: number
}

const itemsIn = (bound: BoundPath, { named, itemsAt }: Resources): readonly ItemInPath[] => {
  if (named.size === 0) return []
  return bound.segments.flatMap((segment, index) => {
    if (parameterIn(segment) === undefined) return []
    const declared = itemsAt(shapeAt(bound, index + 1))
    const collection = declared === undefined ? shapeAt(bound, index) : templateShape(declared.collection)
    const at = declared === undefined ? index : bound.segments.indexOf(`{${declared.id}}`)
    return named.has(collection) ? [{ collection, id: bound.values[at], length: index + 1 }] : []
  })
}

/** A literal segment in the place of an id is one that the upstream resolves, such as `/users/me`. */
const kindAt = ({ segments, values }: BoundPath, index: number): KindOfId =>
  parameterIn(segments[index]) === undefined ? 'alias' : kindOf(values[index] ?? '')

const storedAt = (names: ResourceTagNames, bound: BoundPath, { parameterOf }: Resources): readonly string[] =>
  bound.segments.flatMap((_, index) => {
    const length = index + 1
    const tags = [names.within(keyAt(bound, length)), names.within(shapeAt(bound, length))]
    if (parameterOf(shapeAt(bound, index)) === undefined) return tags
    const kind = kindAt(bound, index)
    tags.push(names.ofKind(kind, keyAt(bound, index)))
    return kind === 'alias' ? [...tags, names.ofKind(kind, shapeAt(bound, index))] : tags
  })

/** Of responses that a write to another path changes, by declaration. */
const storedByDeclaration = (
  names: ResourceTagNames,
  resources: Resources,
  resource: Resource,
  bound: BoundPath,
  content: Buffer,
): readonly string[] => [
  ...itemsIn(bound, resources).flatMap(({ collection, id = '', length }) => [
    ...[names.belowOne(collection), names.below(collection, id)],
    ...(length === segmentsOf(resource.target).length
      ? [names.showingOne(collection), names.showingItem(collection, id)]
      : []),
  ]),
  ...(resource.collection !== undefined && resource.kind === 'list'
    ? [
        names.showing(templateShape(resource.collection)),
        names.showingOne(templateShape(resource.collection)),
      ]
    : []),
  ...[...resource.members].flatMap(([pointer, collection]) => {
    const shape = templateShape(collection)
    const ids = memberIds(content, pointer, resources.parameterOf(shape) ?? 'id')
    const shown = ids?.map((id) => names.showingItem(shape, oneSpelling(id))) ?? [names.showing(shape)]
    return [names.showingOne(shape), ...shown]
  }),
]

/** The same items by other ids: `me` may be any item, and an id of another kind another name of the same one. */
const otherNames = (names: ResourceTagNames, bound: BoundPath): readonly string[] =>
  bound.segments.flatMap((segment, index) => {
    if (parameterIn(segment) === undefined) return []
    const collection = keyAt(bound, index)
    const value = bound.values[index]
    if (value === undefined) return [names.ofKind('alias', collection)]
    const kind = kindOf(value)
    return kind === 'alias'
      ? [names.within(collection)]
      : kindsOfIds.filter((other) => other !== kind).map((other) => names.ofKind(other, collection))
  })

/** Responses that show items of the path, by declaration. */
const writtenByDeclaration = (
  names: ResourceTagNames,
  resources: Resources,
  bound: BoundPath,
  created: BoundPath | undefined,
): readonly string[] => {
  const ofItem = ({ collection, id, length }: ItemInPath): readonly string[] => {
    const shown = id === undefined ? names.showingOne(collection) : names.showingItem(collection, id)
    const tags = [names.showing(collection), shown]
    if (length < bound.segments.length) return tags
    return [...tags, id === undefined ? names.belowOne(collection) : names.below(collection, id)]
  }
  const items = itemsIn(bound, resources).flatMap(ofItem)
  const own = shapeAt(bound, bound.segments.length)
  if (!resources.named.has(own)) return items
  return [
    ...items,
    names.showing(own),
    ...(created === undefined ? [names.showingOne(own), names.belowOne(own)] : []),
  ]
}

/** A path that a write is a write to, and that of the new item in it where the write has created one and changed nothing else. */
type WrittenPath = readonly [bound: BoundPath, created: BoundPath | undefined]

/** Responses that a write to the path changes; undefined for all of the service. */
const writtenAt = (
  names: ResourceTagNames,
  resources: Resources,
  [bound, created]: WrittenPath,
): readonly string[] | undefined => {
  const { segments, values } = bound
  const [first] = values
  const isAnyOfRoot =
    parameterIn(segments[0]) !== undefined && first !== undefined && kindOf(first) === 'alias'
  if (segments.length === 0 || isAnyOfRoot || isTooLong(bound)) return undefined
  const key = keyAt(bound, segments.length)
  const isNew = created !== undefined && keyAt(created, segments.length) === key
  return [
    ...(isNew
      ? [
          names.at(key),
          names.absent(key),
          names.ofKind('alias', key),
          names.within(keyAt(created, segments.length + 1)),
        ]
      : [names.within(key)]),
    // A resource shows those below it: a list its items, an item its parts.
    ...segments.map((_, before) => names.at(keyAt(bound, before))),
    ...otherNames(names, bound),
    ...writtenByDeclaration(names, resources, bound, created),
  ]
}

/**
 * RFC 9110 §15.3.2: after 201, Location names the new item. Without it, and after any other response to a POST, several items may have
 * changed.
 */
const createdBy = (
  { kind }: Resource,
  method: string,
  response: WriteResponse | undefined,
): BoundPath | undefined => {
  const path = kind === 'list' && method === 'POST' ? response?.created : undefined
  if (path === undefined) return undefined
  const segments = segmentsOf(path)
  return { segments, values: segments.map(oneSpelling) }
}

const showsMore = (args: TaggedArguments): boolean =>
  Object.keys(args).some((name) => name.startsWith('query.') && embeds.test(name.slice('query.'.length)))

/**
 * Tags from the paths of a document: a write invalidates its resource and all below it, the lists that show it, and the items
 * that it is a part of. A write of unknown reach invalidates everything, and a response of unknown content is invalidated by every write.
 */
export const createStructuralTagger = ({
  service,
  resources,
}: {
  readonly service: string
  readonly resources: Resources
}): Tagger => {
  const names = tagNames(service)
  const general = createServiceTagger({ service })
  const resourceOf = (found: Found | undefined): Resource | undefined => {
    const operation = operationOf(found?.endpoint)
    return operation === undefined ? undefined : resources.of(operation)
  }

  const writesOf = (
    found: Found,
    { collection, invalidates = [], kind, target }: Resource,
    created: BoundPath | undefined,
  ): readonly WrittenPath[] => [
    [startOf(ownPath(found), segmentsOf(target).length), created],
    ...(collection === undefined || kind !== 'list' ? [] : [[pathFrom(collection, found), created] as const]),
    ...invalidates.map((template) => [pathFrom(template, found), undefined] as const),
  ]

  /** The list of a declared collection, and the resources above it. */
  const listsOf = (found: Found, { collection, kind }: Resource): readonly string[] => {
    if (collection === undefined || kind !== 'item') return []
    const bound = pathFrom(collection, found)
    return [...bound.segments, ''].map((_, length) => names.at(keyAt(bound, length)))
  }

  return {
    ...general,
    undeclared: names.unknown,
    storedTags: (found, args, response) => {
      const tags = general.storedTags(found, args, response)
      const resource = resourceOf(found)
      if (found === undefined || resource === undefined) return [...tags, names.unknown]
      const bound = ownPath(found)
      if (isTooLong(bound)) return [...tags, names.unknown]
      const { length } = bound.segments
      const shown = new Set([
        length,
        ...(resource.kind === 'part' ? [segmentsOf(resource.target).length] : []),
      ])
      const isUnknown = resource.kind === 'unknown' || showsMore(args)
      const isAbsent = response.status < 200 || response.status > 299
      const before = isAbsent ? [...bound.segments.keys()] : []
      return [
        ...new Set([
          ...tags,
          ...(isUnknown ? [names.unknown] : []),
          ...storedAt(names, bound, resources),
          ...[...shown].flatMap((one) => [names.at(keyAt(bound, one)), names.at(shapeAt(bound, one))]),
          ...before.map((one) => names.absent(keyAt(bound, one))),
          ...storedByDeclaration(names, resources, resource, bound, response.content),
        ]),
      ]
    },
    writtenTags: (found, given, method, response, shown, isReported) => {
      const everything = general.writtenTags(found, given, method, response, shown, isReported)
      const resource = resourceOf(found)
      if (everything.length === 0 || found === undefined || resource === undefined) return everything
      if (resource.kind === 'unknown' && resource.invalidates === undefined) return everything
      const tags = [names.unknown, ...listsOf(found, resource)]
      if (response !== undefined) tags.push(...invalidatedGroups(names, response.fields))
      for (const path of writesOf(found, resource, createdBy(resource, method, response))) {
        const written = writtenAt(names, resources, path)
        if (written === undefined) return everything
        tags.push(...written)
      }
      return [...new Set(tags)]
    },
  }
}

/** A refusal changes nothing; the outcome of any other failure is unknown. */
const changedNothing = (response: WriteResponse | undefined): boolean =>
  response !== undefined && response.status >= 400 && response.status < 500

/** Every write may change every response: a plant store has one list, and an OpenAPI document states no side effects. */
export const createServiceTagger = ({ service }: { readonly service: string }): Tagger => {
  const names = createTagNames(service)
  return {
    storedTags: (_found, _args, response) => [names.all, ...upstreamTags(names, response.fields)],
    callers: undefined,
    undeclared: undefined,
    isReadable,
    writtenTags: (_found, _args, _method, response, _shown, isReported = false) =>
      isReported || changedNothing(response) ? [] : [names.all],
    everything: names.all,
    changedTags: () => undefined,
  }
}
