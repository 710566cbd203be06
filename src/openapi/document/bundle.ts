import { isJsonObject, type JsonObject } from '../../http/json-text.ts'
import { memoizeByObject } from '../../http/memo.ts'

/** A document with the files that it refers to, parsed. Names are paths relative to the folder of the document. */
export type ApiBundle = {
  readonly root: string
  readonly files: Readonly<Record<string, unknown>>
}

/** A value of the bundle, with its position: faults name it, and schemas are identified by it. */
export type Located = { readonly file: string; readonly path: readonly string[]; readonly node: unknown }

/** A member of an object; the names come from documents, and every object has a `constructor`. */
export const member = (value: unknown, name: string): unknown => {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

export const membersOf = (value: unknown): readonly (readonly [string, unknown])[] =>
  isJsonObject(value) ? Object.entries(value) : []

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const below = ({ file, path, node }: Located, ...names: readonly string[]): Located => ({
  file,
  path: [...path, ...names],
  node: names.reduce(member, node),
})

/** A step of a JSON Pointer (RFC 6901 §4). */
export const pointerStep = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

export const pointerOf = ({ file, path }: Pick<Located, 'file' | 'path'>): string =>
  `${file}#${path.map((step) => `/${pointerStep(step)}`).join('')}`

/** Percent-decoded; the same text where that is not possible. */
export const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The file that a reference names, relative to the folder of the document; undefined for one outside of it. */
export const fileOfReference = (reference: string, from: string): string | undefined => {
  const [address = ''] = reference.split('#', 1)
  if (address === '') return from
  if (/^[a-z][a-z\d+.-]*:|^\/|\\|\?/i.test(address)) return undefined
  const steps = from.split('/').slice(0, -1)
  for (const step of decoded(address).split('/')) {
    if (step === '..') {
      if (steps.length === 0) return undefined
      steps.pop()
    } else if (step !== '.' && step !== '') steps.push(step)
  }
  return steps.join('/')
}

const atPointer = (located: Located, pointer: string): Located | undefined => {
  const steps = pointer === '' ? [] : pointer.slice(1).split('/')
  const target = below(
    located,
    ...steps.map((step) => decoded(step).replaceAll('~1', '/').replaceAll('~0', '~')),
  )
  return target.node === undefined ? undefined : target
}

const splitReference = (reference: string): readonly [address: string, fragment: string] => {
  const hash = reference.indexOf('#')
  return hash < 0 ? [reference, ''] : [reference.slice(0, hash), reference.slice(hash + 1)]
}

/** Files by their own addresses (`$self` of OpenAPI 3.2). */
const filesBySelf = memoizeByObject(
  ({ files }: ApiBundle): ReadonlyMap<string, string> =>
    new Map(
      Object.entries(files).flatMap(([file, node]) => {
        const self = member(node, '$self')
        return typeof self === 'string' && self !== '' ? [[self, file]] : []
      }),
    ),
)

/** The value that a reference leads to; undefined when there is none. */
export const resolve = (bundle: ApiBundle, reference: string, from: string): Located | undefined => {
  const file = filesBySelf(bundle).get(splitReference(reference)[0]) ?? fileOfReference(reference, from)
  if (file === undefined || !Object.hasOwn(bundle.files, file)) return undefined
  const [, fragment] = splitReference(reference)
  if (fragment !== '' && !fragment.startsWith('/')) return undefined
  return atPointer({ file, path: [], node: bundle.files[file] }, fragment)
}

/** References that lead to one another in more steps than this are a cycle. */
const maxReferences = 32

/**
 * The object itself, or the one that its `$ref` leads to: for parameters, bodies and other objects that are not schemas.
 * Undefined when the reference leads nowhere.
 */
export const dereferenced = (bundle: ApiBundle, located: Located): Located | undefined => {
  let current: Located | undefined = located
  for (let count = 0; count < maxReferences; count += 1) {
    if (current === undefined) return undefined
    const reference = member(current.node, '$ref')
    if (typeof reference !== 'string') return current
    current = resolve(bundle, reference, current.file)
  }
  return undefined
}

/** Files that members named `$ref` name; some may be data, such as examples. */
export const namedFiles = (value: unknown, from: string): ReadonlySet<string> => {
  const files = new Set<string>()
  const pending: unknown[] = typeof value === 'object' && value !== null ? [value] : []
  const visit = ([name, inner]: readonly [string, unknown]): void => {
    if (typeof inner === 'object' && inner !== null) pending.push(inner)
    if (name !== '$ref' || typeof inner !== 'string') return
    const file = fileOfReference(inner, from)
    if (file !== undefined && file !== from) files.add(file)
  }
  for (let next = pending.pop(); next !== undefined; next = pending.pop())
    Object.entries(next as object).forEach(visit)
  return files
}

/** A file, or a schema with an `$id`: what references in it are relative to (JSON Schema 2020-12, §8.2). */
export type SchemaResource = {
  readonly uri: string
  readonly root: Located
  /** Schemas by `$anchor` and `$dynamicAnchor`. */
  readonly anchors: Map<string, Located>
  readonly dynamicAnchors: Map<string, Located>
}

/** Members of these are named by the document; a schema may be named `enum`. */
const mapKeywords: ReadonlySet<string> = new Set([
  ...['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions', 'schemas'],
  ...['responses', 'requestBodies', 'headers', 'content', 'callbacks', 'pathItems', 'parameters', 'links'],
  ...['mediaTypes', 'additionalOperations'],
])
/** Values of these are data, whatever their members are named. */
const dataKeywords: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'example', 'examples'])

/** Schemas that are nested deeper have no names: they are refused where they are used. */
const maxSteps = 1_000

const uriOf = (reference: string, base: string): string | undefined => {
  try {
    return new URL(reference, base).href
  } catch {
    return undefined
  }
}

/** A reference to a file outside of the folder has another address than every file. */
const fileUri = (name: string): string => uriOf(name, 'document:///folder/') ?? name

/** Finds schemas by `$id`, `$anchor` and `$dynamicAnchor`. Only the files of the bundle are searched: nothing is fetched. */
export class SchemaResources {
  readonly #bundle: ApiBundle
  readonly #byUri = new Map<string, SchemaResource>()
  readonly #byRoot = new Map<unknown, SchemaResource>()
  /** Steps from the root of the file to the value that `#visit` has reached. */
  readonly #path: string[] = []
  #hasNames = false

  constructor(bundle: ApiBundle, hasIdentifiers: boolean) {
    this.#bundle = bundle
    for (const [file, node] of Object.entries(bundle.files)) {
      const resource = this.#add(fileUri(file), { file, path: [], node })
      if (hasIdentifiers) this.#visit(node, resource, false)
    }
  }

  #add(uri: string, root: Located): SchemaResource {
    const resource = { uri, root, anchors: new Map(), dynamicAnchors: new Map() }
    this.#byUri.set(uri, resource)
    this.#byRoot.set(root.node, resource)
    return resource
  }

  /** The resource that this schema begins, or else the one around it. */
  #named(node: JsonObject, around: SchemaResource): SchemaResource {
    const { $id, $anchor, $dynamicAnchor } = node
    if ($id === undefined && $anchor === undefined && $dynamicAnchor === undefined) return around
    this.#hasNames = true
    const located = { file: around.root.file, path: [...this.#path], node }
    const uri = typeof $id === 'string' ? uriOf(splitReference($id)[0], around.uri) : undefined
    const resource = uri === undefined || uri === around.uri ? around : this.#add(uri, located)
    if (located.path.length === 0) this.#byUri.set(around.uri, resource)
    if (typeof $anchor === 'string') resource.anchors.set($anchor, located)
    if (typeof $dynamicAnchor !== 'string') return resource
    resource.anchors.set($dynamicAnchor, located)
    resource.dynamicAnchors.set($dynamicAnchor, located)
    return resource
  }

  #visit(node: unknown, around: SchemaResource, isMap: boolean): void {
    if (typeof node !== 'object' || node === null || this.#path.length > maxSteps) return
    const resource = isMap || !isJsonObject(node) ? around : this.#named(node, around)
    for (const [name, inner] of Object.entries(node)) {
      if (typeof inner !== 'object' || (!isMap && dataKeywords.has(name))) continue
      this.#path.push(name)
      this.#visit(inner, resource, !isMap && mapKeywords.has(name) && isJsonObject(inner))
      this.#path.pop()
    }
  }

  /** The innermost resource that holds a value. */
  at({ file, path }: Pick<Located, 'file' | 'path'>): SchemaResource | undefined {
    let node = this.#bundle.files[file]
    let resource = this.#byRoot.get(node)
    if (!this.#hasNames) return resource
    for (const step of path) {
      node = member(node, step)
      resource = this.#byRoot.get(node) ?? resource
    }
    return resource
  }

  /** The schema that a reference leads to; undefined when there is none. */
  resolve(reference: string, from: Located): Located | undefined {
    const plain = (): Located | undefined => resolve(this.#bundle, reference, from.file)
    if (!this.#hasNames) return plain()
    const [address, fragment] = splitReference(reference)
    const around = this.at(from)
    const uri = uriOf(address, around?.uri ?? '')
    const resource = address === '' ? around : this.#byUri.get(uri ?? '')
    // By the standard first. Many documents have an `$id` in a schema, and pointers from the root of their file nevertheless.
    if (resource === undefined) return plain()
    const name = decoded(fragment)
    const target =
      fragment === '' || fragment.startsWith('/')
        ? atPointer(resource.root, fragment)
        : resource.anchors.get(name)
    return target ?? plain()
  }
}
