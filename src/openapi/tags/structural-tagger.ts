import { createTagNames } from '../../cache/tag-names.ts'
import { invalidatedGroups, upstreamTags } from '../../cache/upstream-tags.ts'
import { jsonReadability } from '../../http/bodies/json-readability.ts'
import { parsedJson } from '../../http/json-text.ts'
import type { Found } from '../../service/row.ts'
import type { TaggedArguments, Tagger, WriteResponse } from '../../service/tagger.ts'
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
  const [step, ...deeperSteps] = steps
  if (step === undefined) return [value]
  if (step !== '*')
    return valuesAt(memberOf(value, step.replaceAll('~1', '/').replaceAll('~0', '~')), deeperSteps)
  return Array.isArray(value) ? value.flatMap((item) => valuesAt(item, deeperSteps)) : [undefined]
}

/** Names that the id of an item has in responses: that of the parameter, its last word, `id`, `name`. */
const idNames = (parameter: string): readonly string[] => {
  const words = parameter.split(/[_-]|(?<=[a-z\d])(?=[A-Z])/)
  const last = words.at(-1) ?? ''
  return [...new Set([parameter, last, last.toLowerCase(), 'id', 'name'])]
}

const maxMembers = 128

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
  return ids.length > maxMembers || items.some(({ length }) => length === 0) ? undefined : ids.map(String)
}

/** A path whose parameters have values, as far as they are known. */
type BoundPath = {
  readonly segments: readonly string[]
  /** Of each segment the one spelling of its text; undefined: it may be any. */
  readonly values: readonly (string | undefined)[]
}

/** Longer paths have no tags: every write invalidates their responses, and a write to them everything. */
const longestKey = 512

/** Parts of the names of parameters, and of their members, that add other resources to the same response. */
const embeds =
  /embed|expan[ds]|inclu[ds]|join|popul|relat|with|fields|select|projection|inline|nest|deep|depth|eager|load|resolv|hydrat/i

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
const keyAt = (path: BoundPath, length: number): string => {
  const values = path.values.slice(0, length)
  return values.includes(undefined) ? shapeAt(path, length) : `/${values.join('/')}`
}

const isTooLong = (path: BoundPath): boolean => keyAt(path, path.segments.length).length > longestKey

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

const itemsIn = (path: BoundPath, { namedCollections, itemsAt }: Resources): readonly ItemInPath[] => {
  if (namedCollections.size === 0) return []
  return path.segments.flatMap((segment, index) => {
    if (parameterIn(segment) === undefined) return []
    const declaration = itemsAt(shapeAt(path, index + 1))
    const collection =
      declaration === undefined ? shapeAt(path, index) : templateShape(declaration.collection)
    const at = declaration === undefined ? index : path.segments.indexOf(`{${declaration.id}}`)
    return namedCollections.has(collection) ? [{ collection, id: path.values[at], length: index + 1 }] : []
  })
}

/** A literal segment in the place of an id is one that the upstream resolves, such as `/users/me`. */
const kindAt = ({ segments, values }: BoundPath, index: number): KindOfId =>
  parameterIn(segments[index]) === undefined ? 'alias' : kindOf(values[index] ?? '')

const storedAt = (names: ResourceTagNames, path: BoundPath, { parameterOf }: Resources): readonly string[] =>
  path.segments.flatMap((_, index) => {
    const length = index + 1
    const tags = [names.within(keyAt(path, length)), names.within(shapeAt(path, length))]
    if (parameterOf(shapeAt(path, index)) === undefined) return tags
    const kind = kindAt(path, index)
    tags.push(names.ofKind(kind, keyAt(path, index)))
    return kind === 'alias' ? [...tags, names.ofKind(kind, shapeAt(path, index))] : tags
  })

/** Of responses that a write to another path changes, by declaration. */
const storedByDeclaration = (
  names: ResourceTagNames,
  resources: Resources,
  resource: Resource,
  path: BoundPath,
  content: Buffer,
): readonly string[] => [
  ...itemsIn(path, resources).flatMap(({ collection, id = '', length }) => [
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
    const itemTags = ids?.map((id) => names.showingItem(shape, oneSpelling(id))) ?? [names.showing(shape)]
    return [names.showingOne(shape), ...itemTags]
  }),
]

/** The same items by other ids: `me` may be any item, and an id of another kind another name of the same one. */
const otherNames = (names: ResourceTagNames, path: BoundPath): readonly string[] =>
  path.segments.flatMap((segment, index) => {
    if (parameterIn(segment) === undefined) return []
    const collection = keyAt(path, index)
    const value = path.values[index]
    if (value === undefined) return [names.ofKind('alias', collection)]
    const kind = kindOf(value)
    return kind === 'alias'
      ? [names.within(collection)]
      : kindsOfIds
          .filter((otherKind) => otherKind !== kind)
          .map((otherKind) => names.ofKind(otherKind, collection))
  })

/** Responses that show items of the path, by declaration. */
const writtenByDeclaration = (
  names: ResourceTagNames,
  resources: Resources,
  path: BoundPath,
  created: BoundPath | undefined,
): readonly string[] => {
  const ofItem = ({ collection, id, length }: ItemInPath): readonly string[] => {
    const itemTag = id === undefined ? names.showingOne(collection) : names.showingItem(collection, id)
    const tags = [names.showing(collection), itemTag]
    if (length < path.segments.length) return tags
    return [...tags, id === undefined ? names.belowOne(collection) : names.below(collection, id)]
  }
  const items = itemsIn(path, resources).flatMap(ofItem)
  const shape = shapeAt(path, path.segments.length)
  if (!resources.namedCollections.has(shape)) return items
  return [
    ...items,
    names.showing(shape),
    ...(created === undefined ? [names.showingOne(shape), names.belowOne(shape)] : []),
  ]
}

/** A path that a write is a write to, and that of the new item in it where the write has created one and changed nothing else. */
type WrittenPath = readonly [bound: BoundPath, created: BoundPath | undefined]

/** Responses that a write to the path changes; undefined for all of the service. */
const writtenAt = (
  names: ResourceTagNames,
  resources: Resources,
  [path, created]: WrittenPath,
): readonly string[] | undefined => {
  const { segments, values } = path
  const [first] = values
  const isAnyOfRoot =
    parameterIn(segments[0]) !== undefined && first !== undefined && kindOf(first) === 'alias'
  if (segments.length === 0 || isAnyOfRoot || isTooLong(path)) return undefined
  const key = keyAt(path, segments.length)
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
    ...segments.map((_, before) => names.at(keyAt(path, before))),
    ...otherNames(names, path),
    ...writtenByDeclaration(names, resources, path, created),
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

/** May a parameter add other resources to the response? A value that is undefined was sent and not read. */
const mayEmbed = (name: string, value: unknown): boolean => {
  if (value === undefined || embeds.test(name)) return true
  if (typeof value === 'string') return value.includes('{')
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).some(([member, inner]) => mayEmbed(member, inner))
  )
}

/** What the content of a QUERY and a query that is one value ask for is unknown. */
const showsMore = ({ endpoint }: Found, args: TaggedArguments): boolean => {
  const operation = operationOf(endpoint)
  if (operation?.method === 'QUERY' || operation?.queryString !== undefined) return true
  return Object.entries(args).some(([name, value]) => !name.startsWith('path.') && mayEmbed(name, value))
}

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
  const resourceOf = (match: Found | undefined): Resource | undefined => {
    const operation = operationOf(match?.endpoint)
    return operation === undefined ? undefined : resources.of(operation)
  }

  const writesOf = (
    match: Found,
    { collection, invalidates = [], kind, target }: Resource,
    created: BoundPath | undefined,
  ): readonly WrittenPath[] => [
    [startOf(ownPath(match), segmentsOf(target).length), created],
    ...(collection === undefined || kind !== 'list' ? [] : [[pathFrom(collection, match), created] as const]),
    ...invalidates.map((template) => [pathFrom(template, match), undefined] as const),
  ]

  /** The list of a declared collection, and the resources above it. */
  const listsOf = (match: Found, { collection, kind }: Resource): readonly string[] => {
    if (collection === undefined || kind !== 'item') return []
    const path = pathFrom(collection, match)
    return [...path.segments, ''].map((_, length) => names.at(keyAt(path, length)))
  }

  return {
    ...general,
    undeclared: () => names.unknownDependencies,
    storedTags: (match, args, response) => {
      const tags = general.storedTags(match, args, response)
      const resource = resourceOf(match)
      if (match === undefined || resource === undefined) return [...tags, names.unknownDependencies]
      const path = ownPath(match)
      if (isTooLong(path)) return [...tags, names.unknownDependencies]
      const { length } = path.segments
      const depths = new Set([
        length,
        ...(resource.kind === 'part' ? [segmentsOf(resource.target).length] : []),
      ])
      const isUnknown = resource.kind === 'unknown' || showsMore(match, args)
      const isAbsent = response.status < 200 || response.status > 299
      const before = isAbsent ? [...path.segments.keys()] : []
      return [
        ...new Set([
          ...tags,
          ...(isUnknown ? [names.unknownDependencies] : []),
          ...storedAt(names, path, resources),
          ...[...depths].flatMap((depth) => [names.at(keyAt(path, depth)), names.at(shapeAt(path, depth))]),
          ...before.map((depth) => names.absent(keyAt(path, depth))),
          ...storedByDeclaration(names, resources, resource, path, response.content),
        ]),
      ]
    },
    writtenTags: (match, args, method, response, shown, isReported) => {
      const everything = general.writtenTags(match, args, method, response, shown, isReported)
      const resource = resourceOf(match)
      if (everything.length === 0 || match === undefined || resource === undefined) return everything
      if (resource.kind === 'unknown' && resource.invalidates === undefined) return everything
      const tags = [names.unknownDependencies, ...listsOf(match, resource)]
      if (response !== undefined) tags.push(...invalidatedGroups(names, response.headers))
      for (const path of writesOf(match, resource, createdBy(resource, method, response))) {
        const pathTags = writtenAt(names, resources, path)
        if (pathTags === undefined) return everything
        tags.push(...pathTags)
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
    storedTags: (_found, _args, response) => [names.all, ...upstreamTags(names, response.headers)],
    callers: undefined,
    undeclared: undefined,
    readability: jsonReadability,
    writtenTags: (_found, _args, _method, response, _shown, isReported = false) =>
      isReported || changedNothing(response) ? [] : [names.all],
    everything: names.all,
    changedTags: () => undefined,
  }
}
