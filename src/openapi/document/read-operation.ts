import { isJsonObject } from '../../http/json-text.ts'
import type { DeclaredEffect, Method } from '../../service/row.ts'
import { type ApiBundle, below, dereferenced, type Located, listOf, member, membersOf } from './bundle.ts'
import type {
  BodyContent,
  CacheExtension,
  Operation,
  Parameter,
  ParameterLocation,
  QueryString,
  RequestBody,
  ResourceExtension,
  SecurityScheme,
  Style,
} from './operation.ts'
import { type Dialect, type ReferenceFault, type RequestSchema, SchemaTranslator } from './request-schema.ts'

/** A fault of a document, with the position of the value concerned. */
export type DocumentFault = {
  readonly file: string
  readonly path: readonly string[]
  readonly message: string
  /** The value with which this one does not agree. */
  readonly first?: Pick<Located, 'file' | 'path'>
}

const locations: ReadonlySet<unknown> = new Set(['path', 'query', 'header', 'cookie'])

/** Header parameters of these names are described elsewhere in the document, and have no meaning (OpenAPI 3.1 §4.8.12). */
const describedElsewhere: ReadonlySet<string> = new Set(['accept', 'content-type', 'authorization'])

const defaultStyles: Readonly<Record<ParameterLocation, Style>> = {
  path: 'simple',
  header: 'simple',
  query: 'form',
  cookie: 'form',
}

const stylesOf: Readonly<Record<ParameterLocation, ReadonlySet<unknown>>> = {
  path: new Set(['simple', 'label', 'matrix']),
  header: new Set(['simple']),
  query: new Set(['form', 'spaceDelimited', 'pipeDelimited', 'deepObject']),
  cookie: new Set(['form']),
}

/** The style and `explode` of a parameter, or of a member of a form, with their defaults. */
const styled = (node: unknown, location: ParameterLocation): Pick<Parameter, 'style' | 'explode'> => {
  const declaredStyle = member(node, 'style')
  const style = stylesOf[location].has(declaredStyle) ? (declaredStyle as Style) : defaultStyles[location]
  const explode = member(node, 'explode')
  return {
    style,
    explode: typeof explode === 'boolean' ? explode : style === 'form' || style === 'deepObject',
  }
}

const isJsonType = (mediaType: string): boolean => /^application\/(?:[^;]+\+)?json$/.test(mediaType)

/** Type and subtype in lower case. */
const essence = (mediaType: string): string => (mediaType.split(';', 1)[0] ?? '').trim().toLowerCase()

const effectOf = (node: unknown): DeclaredEffect => {
  if (member(node, 'x-trellis-writes') === true) return 'writes'
  return member(node, 'x-trellis-safe') === true ? 'safe' : 'as-method'
}

const cacheOf = (node: unknown): CacheExtension | undefined => {
  const cache = member(node, 'x-trellis-cache')
  const ttl = member(cache, 'ttl')
  if (typeof ttl !== 'string') return undefined
  const scope = member(cache, 'scope')
  return scope === 'public' || scope === 'credential' ? { ttl, scope } : { ttl }
}

const isText = (value: unknown): value is string => typeof value === 'string'

const isTextMap = (value: unknown): value is Readonly<Record<string, string>> =>
  isJsonObject(value) && Object.values(value).every(isText)

const rewriteExtensions = ['x-trellis-set', 'x-trellis-drop-default'] as const

/** The text of a value in a query; undefined where it has none, or where a double has lost digits of a number. */
const exactText = (value: unknown): string | undefined => {
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) return undefined
  return ['string', 'boolean', 'number'].includes(typeof value) ? String(value) : undefined
}

export const nowhere = 'the reference leads to nothing in this document or below its folder'

const schemaFaults: Readonly<Record<ReferenceFault['kind'], string>> = {
  nowhere,
  'too-deep': 'the schema is behind more than 300 others, one inside of the other or by reference',
}

/** Reads the operations of one document; collects faults on the way. */
export class OperationReader {
  readonly faults: DocumentFault[] = []
  readonly unchecked: DocumentFault[] = []
  readonly keyHeaders = new Set<string>()
  readonly keyParameters = new Set<string>()
  readonly passwordParameters = new Set<string>()
  readonly #bundle: ApiBundle
  readonly #root: Located
  readonly #dialect: Dialect
  readonly #schemas: SchemaTranslator
  readonly #schemes = new Map<string, SecurityScheme>()

  constructor(bundle: ApiBundle, dialect: Dialect) {
    this.#bundle = bundle
    this.#dialect = dialect
    this.#root = { file: bundle.root, path: [], node: bundle.files[bundle.root] }
    this.#schemas = new SchemaTranslator(bundle, dialect, 'request')
    for (const [name] of membersOf(member(member(this.#root.node, 'components'), 'securitySchemes')))
      this.#schemes.set(name, this.#schemeOf(below(this.#root, 'components', 'securitySchemes', name)))
  }

  get definitions(): ReadonlyMap<string, RequestSchema> {
    return this.#schemas.definitions
  }

  get hasStrictIntegers(): boolean {
    return this.#schemas.hasStrictIntegers()
  }

  fault({ file, path }: Located, message: string): void {
    this.faults.push({ file, path, message })
  }

  hint({ file, path }: Located, message: string, first?: Located): void {
    this.unchecked.push({
      file,
      path,
      message,
      ...(first && { first: { file: first.file, path: first.path } }),
    })
  }

  #follow(located: Located): Located | undefined {
    const target = dereferenced(this.#bundle, located)
    if (target === undefined) this.fault(located, nowhere)
    return target
  }

  #schema(located: Located): RequestSchema {
    const faultsBefore = this.#schemas.faults.length
    const schema = this.#schemas.translate(located)
    for (const { located: at, kind } of this.#schemas.faults.slice(faultsBefore))
      this.fault(at, schemaFaults[kind])
    return schema
  }

  #schemeOf(located: Located): SecurityScheme {
    const node = dereferenced(this.#bundle, located)?.node
    const name = member(node, 'name')
    const location = member(node, 'in')
    switch (member(node, 'type')) {
      case 'apiKey':
        if (typeof name !== 'string' || name === '') return { kind: 'unseen' }
        if (location === 'header') {
          // Some documents describe a bearer token as a key.
          this.keyHeaders.add(name.toLowerCase())
          return { kind: 'apiKey', location, name: name.toLowerCase() }
        }
        if (location === 'query') this.keyParameters.add(name)
        return location === 'query' || location === 'cookie'
          ? { kind: 'apiKey', location, name }
          : { kind: 'unseen' }
      case 'http': {
        const scheme = member(node, 'scheme')
        return typeof scheme === 'string'
          ? { kind: 'http', scheme: scheme.toLowerCase() }
          : { kind: 'unseen' }
      }
      case 'oauth2':
      case 'openIdConnect':
        return { kind: 'bearer' }
      default:
        return { kind: 'unseen' }
    }
  }

  security(operation: Located): readonly (readonly SecurityScheme[])[] {
    const ownSecurity = member(operation.node, 'security')
    const alternatives = listOf(
      Array.isArray(ownSecurity) ? ownSecurity : member(this.#root.node, 'security'),
    ).filter(isJsonObject)
    return alternatives.map((alternative) =>
      Object.keys(alternative).map((name) => this.#schemes.get(name) ?? { kind: 'unseen' }),
    )
  }

  /** The schema of a parameter, behind its references, and its default: in 3.0 that beside a reference has no meaning. */
  #described(schema: Located): { readonly isList: boolean; readonly fallback: unknown } {
    const target = dereferenced(this.#bundle, schema)?.node
    const beside = this.#dialect === '3.0' && member(schema.node, '$ref') !== undefined ? target : schema.node
    const isList = [member(target, 'type')].flat().includes('array')
    return { isList, fallback: member(beside, 'default') ?? member(target, 'default') }
  }

  /** `format: password`; of a list, that of its items. */
  #isPassword(schema: Located): boolean {
    const described = dereferenced(this.#bundle, schema)
    const items = described && dereferenced(this.#bundle, below(described, 'items'))
    return [schema, described, items].some((one) => member(one?.node, 'format') === 'password')
  }

  /** Whether the document allows a change of this parameter in queries; `isPossible` says whether it could. */
  #allows(located: Located, extension: string, isPossible: boolean, requirement: string): boolean {
    const value = member(located.node, extension) ?? false
    if (value === true && isPossible) return true
    if (value !== false)
      this.fault(below(located, extension), `${extension} is true or false, for ${requirement}`)
    return false
  }

  #rewrites(
    located: Located,
    { location, required, style }: Pick<Parameter, 'location' | 'required' | 'style'>,
  ): Pick<Parameter, 'isSet' | 'droppedDefault'> {
    if (!rewriteExtensions.some((name) => member(located.node, name) !== undefined)) return {}
    const isWritten = location === 'query' && style !== 'deepObject'
    const { isList, fallback } = this.#described(below(located, 'schema'))
    const isSet = this.#allows(located, 'x-trellis-set', isWritten && isList, 'a list in the query')
    const texts = isList === Array.isArray(fallback) ? [fallback].flat().map(exactText) : [undefined]
    const droppedDefault = texts.filter(isText)
    const drops = this.#allows(
      located,
      'x-trellis-drop-default',
      isWritten && !required && droppedDefault.length === texts.length,
      'a parameter of the query that is not required and has a default of texts, booleans or exact numbers',
    )
    return { ...(isSet && { isSet }), ...(drops && { droppedDefault }) }
  }

  parameter(entry: Located): Parameter | undefined {
    const located = this.#follow(entry)
    if (located === undefined) return undefined
    const { node } = located
    const name = member(node, 'name')
    const location = member(node, 'in') as ParameterLocation
    if (member(node, 'in') === 'querystring') return undefined
    if (typeof name !== 'string' || !locations.has(location)) {
      this.fault(located, 'a parameter needs a name and in: path, query, querystring, header or cookie')
      return undefined
    }
    if (location === 'header' && describedElsewhere.has(name.toLowerCase())) return undefined
    const general = {
      name: location === 'header' ? name.toLowerCase() : name,
      location,
      required: location === 'path' || member(node, 'required') === true,
      ...styled(node, location),
      allowEmptyValue: member(node, 'allowEmptyValue') === true,
    }
    const rewrites = this.#rewrites(located, general)
    const [mediaType] = membersOf(member(node, 'content'))[0] ?? []
    const described =
      mediaType === undefined ? below(located, 'schema') : below(located, 'content', mediaType, 'schema')
    if (location === 'query' && this.#isPassword(described)) this.passwordParameters.add(name)
    const schema = this.#schema(described)
    if (mediaType === undefined) return { ...general, ...rewrites, encoding: 'style', schema }
    return { ...general, encoding: isJsonType(essence(mediaType)) ? 'json' : 'text', schema }
  }

  /** Parameters of the path hold for its operations, unless one of these has its own of that name and location. */
  parameters(path: Located, operation: Located): readonly Parameter[] {
    const parameters = new Map<string, Parameter>()
    for (const owner of [path, operation]) {
      const list = below(owner, 'parameters')
      listOf(list.node).forEach((_, index) => {
        const parameter = this.parameter(below(list, String(index)))
        if (parameter !== undefined) parameters.set(`${parameter.location} ${parameter.name}`, parameter)
      })
    }
    return [...parameters.values()]
  }

  /** The parameter `in: querystring` of the operation, or of its path. */
  queryString(path: Located, operation: Located): QueryString | undefined {
    for (const owner of [operation, path]) {
      const list = below(owner, 'parameters')
      for (const index of listOf(list.node).keys()) {
        const located = dereferenced(this.#bundle, below(list, String(index)))
        if (located === undefined || member(located.node, 'in') !== 'querystring') continue
        const name = member(located.node, 'name')
        const [media] = membersOf(member(located.node, 'content'))
        if (isText(name) && media !== undefined) {
          const required = member(located.node, 'required') === true
          return { name, required, content: this.#content(below(located, 'content', media[0]), media[0]) }
        }
        this.fault(located, 'a parameter in: querystring needs a name and content with one media type')
      }
    }
    return undefined
  }

  /** A media type of OpenAPI 3.2 may be a reference. */
  #content(entry: Located, mediaType: string): BodyContent {
    const located = this.#follow(entry) ?? entry
    const type = essence(mediaType)
    const isForm = type === 'application/x-www-form-urlencoded'
    const encoding = below(located, 'encoding')
    const members = membersOf(encoding.node).map(([name, node]) => {
      const hasStyle = member(node, 'style') !== undefined || member(node, 'explode') !== undefined
      const contentType = member(node, 'contentType')
      const isJson = !hasStyle && typeof contentType === 'string' && isJsonType(essence(contentType))
      return [name, { ...styled(node, 'query'), encoding: isJson ? 'json' : 'style' }] as const
    })
    const reading = isJsonType(type) ? 'json' : isForm ? 'form' : 'size'
    return {
      mediaType: type,
      reading,
      schema: reading === 'size' ? true : this.#schema(below(located, 'schema')),
      members: new Map(members),
    }
  }

  body(operation: Located): RequestBody | undefined {
    const entry = below(operation, 'requestBody')
    if (entry.node === undefined) return undefined
    const located = this.#follow(entry)
    if (located === undefined) return undefined
    const contents = membersOf(member(located.node, 'content')).map(([mediaType]) =>
      this.#content(below(located, 'content', mediaType), mediaType),
    )
    const stars = ({ mediaType }: BodyContent): number => mediaType.split('*').length
    return {
      required: member(located.node, 'required') === true,
      contents: contents.sort((a, b) => stars(a) - stars(b)),
    }
  }

  /** An extension of the operation, or of its path; a fault in one would leave stored responses that a write has made stale. */
  #extension(path: Located, operation: Located, name: string): Located | undefined {
    return [operation, path].map((owner) => below(owner, name)).find(({ node }) => node !== undefined)
  }

  #resource(path: Located, operation: Located): ResourceExtension | undefined {
    const located = this.#extension(path, operation, 'x-trellis-resource')
    if (located === undefined) return undefined
    const { collection, id, members, ...others } = isJsonObject(located.node) ? located.node : {}
    const isSound =
      isJsonObject(located.node) &&
      Object.keys(others).length === 0 &&
      (collection === undefined || isText(collection)) &&
      (id === undefined || (isText(id) && collection !== undefined)) &&
      (members === undefined || isTextMap(members))
    if (isSound) return located.node
    this.fault(
      located,
      'expected collection, id (with collection) and members (JSON Pointers with collections)',
    )
    return undefined
  }

  #invalidates(path: Located, operation: Located): readonly string[] | undefined {
    const located = this.#extension(path, operation, 'x-trellis-invalidates')
    if (located === undefined) return undefined
    if (Array.isArray(located.node) && located.node.every(isText)) return located.node
    this.fault(located, 'expected a list of paths of the document')
    return undefined
  }

  operation(path: Located, located: Located, method: Method, template: string): Operation {
    const operationId = member(located.node, 'operationId')
    return {
      method,
      template,
      operationId: typeof operationId === 'string' ? operationId : '',
      parameters: this.parameters(path, located),
      queryString: this.queryString(path, located),
      body: this.body(located),
      security: this.security(located),
      cache: cacheOf(located.node),
      effect: effectOf(located.node),
      resource: this.#resource(path, located),
      invalidates: this.#invalidates(path, located),
      isAmbiguous: false,
    }
  }
}
