import { memoizeByObject, memoizeLast } from '../http/memo.ts'
import { folded, pathReadings } from '../http/targets.ts'
import { fault, type Reading } from './fault.ts'

/** The requests that a cache rule or rate limit applies to, parsed from a text such as `GET /site/v2/**`. */
export type RuleMatch = {
  /** The text itself, for logs and `trellis explain`. */
  readonly text: string
  /** In upper case; `GET` includes HEAD (RFC 9110 §9.3.2). */
  readonly methods: readonly string[]
  /** Segments of the path below the mount; `**` matches any number of segments, `*` any text within one. */
  readonly segments: readonly string[]
}

/** RFC 10008 §2.7: responses to QUERY are stored by its content. */
const cacheableMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'QUERY'])
const segmentPattern = /^[A-Za-z0-9._~!$&'()*+,;=:@%{}-]+$/

const plainPath = /^\/[A-Za-z0-9._~*/{}-]{0,200}$/

/** What is wrong with the methods in front of a path. */
const methodsFault = (
  methods: readonly string[],
  path: string,
  methodFault: (method: string) => string | undefined,
): string | undefined => {
  const message = methods.map(methodFault).find((reason) => reason !== undefined)
  const capitals = methods.map((method) => method.toUpperCase())
  const isCase = message !== undefined && capitals.every((method) => methodFault(method) === undefined)
  return isCase && plainPath.test(path) ? `methods are in capitals: write "${capitals} ${path}"` : message
}

const readMatch = (
  text: string,
  exampleMethod: 'GET' | '*',
  methodFault: (method: string) => string | undefined,
): Reading<RuleMatch> => {
  const [methodList, path, ...rest] = text.trim().split(/ +/)
  if (methodList === undefined || path === undefined || rest.length > 0) {
    const isPath = path === undefined && plainPath.test(methodList ?? '')
    return fault(
      isPath
        ? `expected methods and a path: write "${exampleMethod} ${methodList}"`
        : 'expected methods and a path, e.g. "GET /site/v2/**"',
    )
  }
  const methods = methodList.split(',')
  const message = methodsFault(methods, path, methodFault)
  if (message !== undefined) return fault(message)
  if (!path.startsWith('/'))
    return fault('the path must start with "/" and is relative to the mount of the service')
  if (path.includes('?')) return fault('the path has no query: the rule holds for every query of the path')
  const segments = path === '/' ? [] : path.slice(1).split('/')
  const odd = segments.find((segment) => !segmentPattern.test(segment) || segment === '.' || segment === '..')
  if (odd !== undefined) return fault('the path has an empty segment, a dot segment or an invalid character')
  if (segments.some((segment) => segment.includes('**') && segment !== '**')) {
    return fault('"**" must be a whole segment')
  }
  const withHead = methods.includes('GET') ? [...new Set([...methods, 'HEAD'])] : methods
  return { kind: 'read', value: { text, methods: withHead, segments } }
}

export const parseRuleMatch = (text: string): Reading<RuleMatch> =>
  readMatch(text, 'GET', (method) =>
    cacheableMethods.has(method)
      ? undefined
      : 'only responses to GET, HEAD and QUERY are stored: the rule must start with one of them',
  )

const operationPattern = /^query +(\*|\*?[_A-Za-z][_0-9A-Za-z]*(?:\*[_0-9A-Za-z]*)*)$/

/** Parses the `match` of a cache rule of a GraphQL endpoint: a path of one segment, the name of the operation. */
export const parseQueryMatch = (text: string): Reading<RuleMatch> => {
  const name = operationPattern.exec(text.trim())?.[1]
  return name === undefined
    ? fault('expected query and the name of an operation, e.g. "query Me", or "query *"')
    : { kind: 'read', value: { text, methods: ['query'], segments: [name] } }
}

/** Parses the `match` of a rate limit: any methods, `*` for all. */
export const parseRouteMatch = (text: string): Reading<RuleMatch> =>
  readMatch(text, '*', (method) =>
    method === '*' || /^[A-Z][A-Z-]{0,31}$/.test(method)
      ? undefined
      : 'expected methods in capitals, separated by commas, or "*"',
  )

/** Requests that count as no write, parsed from a text such as `POST /?wc-ajax=*`. */
export type WriteMatch = RuleMatch & {
  /** All parameters of the query; `*` in a value matches any text. */
  readonly query: readonly { readonly name: string; readonly value: string }[]
}

/** Requests of WordPress that src/wordpress/routes/harmless-writes.ts matches. */
const namedWrites = ['heartbeat', 'failed-login'] as const

/** A request of WordPress by its name. */
export type NamedWrite = { readonly text: (typeof namedWrites)[number] }

export type HarmlessWrite = WriteMatch | NamedWrite

export const isPattern = (write: HarmlessWrite): write is WriteMatch => 'segments' in write

const readingMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])
const parameterPattern = /^([A-Za-z0-9_-]{1,100})=([A-Za-z0-9_.*~-]{0,200})$/

export const parseHarmlessWrite = (text: string): Reading<HarmlessWrite> => {
  const name = namedWrites.find((candidate) => candidate === text.trim())
  if (name !== undefined) return { kind: 'read', value: { text: name } }
  const [requests = '', query, ...more] = text.trim().split('?')
  const parameters = query === undefined ? [] : query.split('&').map((part) => parameterPattern.exec(part))
  const pairs = parameters.flatMap((part) =>
    part === null ? [] : [{ name: part[1] ?? '', value: part[2] ?? '' }],
  )
  const isPlain = new Set(pairs.map(({ name }) => name)).size === parameters.length
  if (more.length > 0 || !isPlain)
    return fault('expected parameters as name=value behind one "?", each once, e.g. "POST /?wc-ajax=*"')
  const reading = readMatch(requests, '*', (method) =>
    /^[A-Z][A-Z-]{0,31}$/.test(method) && !readingMethods.has(method)
      ? undefined
      : 'expected methods that write, e.g. POST',
  )
  return reading.kind === 'read' ? { kind: 'read', value: { ...reading.value, text, query: pairs } } : reading
}

/**
 * Does a sequence match a pattern in which `any` matches any number of elements? What stands behind the last `any` is compared with
 * the end of the sequence only, and an earlier part is placed as early as it fits: the cost is at most pattern × sequence.
 */
const matchesSequence = (
  pattern: string | readonly string[],
  sequence: string | readonly string[],
  any: '*' | '**',
  isMatch: (item: string, element: string) => boolean,
): boolean => {
  let at = 0
  let anyAt = -1
  let resumeAt = 0
  for (let index = 0; index < sequence.length; ) {
    const item = pattern[at]
    if (item === any) {
      anyAt = at
      at += 1
      if (pattern.lastIndexOf(any) === anyAt) index = Math.max(index, sequence.length - (pattern.length - at))
      resumeAt = index
    } else if (item !== undefined && isMatch(item, sequence[index] as string)) {
      at += 1
      index += 1
    } else if (anyAt === -1) {
      return false
    } else {
      at = anyAt + 1
      resumeAt += 1
      index = resumeAt
    }
  }
  while (pattern[at] === any) at += 1
  return at === pattern.length
}

const sameText = (item: string, element: string): boolean => item === element
const sameSegment = (item: string, element: string): boolean =>
  item === element || (item.includes('*') && matchesSequence(item, element, '*', sameText))

const segmentsOf = (path: string): readonly string[] => (path === '/' ? [] : path.slice(1).split('/'))

export const hasMethod = ({ methods }: RuleMatch, method: string): boolean =>
  methods.includes(method) || methods[0] === '*'

const fits = (pattern: readonly string[], path: readonly string[]): boolean =>
  matchesSequence(pattern, path, '**', sameSegment)

/** Does the rule apply to this method and this path (or route template) below the mount, letter by letter? */
export const matchesRule = (match: RuleMatch, method: string, path: string): boolean =>
  hasMethod(match, method) && fits(match.segments, segmentsOf(path))

/** May a path of the route template match the rule? */
export const mayMatchTemplate = (match: RuleMatch, method: string, template: string): boolean =>
  hasMethod(match, method) &&
  matchesSequence(
    match.segments,
    segmentsOf(template),
    '**',
    (item, segment) => segment.includes('{') || sameSegment(item, segment),
  )

const foldedSegments = memoizeByObject(({ segments }: RuleMatch) =>
  segmentsOf(folded(`/${segments.join('/')}`)),
)

/** A path as it was sent, and each form in which a server may read it. Every rule and limit asks for those of the same path. */
const formsOf = memoizeLast((path) => ({
  sent: segmentsOf(path),
  readings: pathReadings(path).map(segmentsOf),
}))

/** For a limit: does the rule apply to this path in any form in which a server may read it, if it has the method? */
export const mayMatchPath = (match: RuleMatch, path: string): boolean => {
  const { sent, readings } = formsOf(path)
  return fits(match.segments, sent) || readings.some((reading) => fits(foldedSegments(match), reading))
}

/** For cache rules: the first one that applies to each form in which a server may read this path, each once; undefined for none. */
export const firstRules = <Rule extends { readonly match: RuleMatch }>(
  rules: readonly Rule[],
  method: string,
  path: string,
): readonly (Rule | undefined)[] => {
  const { sent, readings } = formsOf(path)
  const ofMethod = rules.filter(({ match }) => hasMethod(match, method))
  const first = [ofMethod.find(({ match }) => fits(match.segments, sent))]
  for (const reading of readings) {
    const rule = ofMethod.find(({ match }) => fits(foldedSegments(match), reading))
    if (!first.includes(rule)) first.push(rule)
  }
  return first
}

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** Undefined when upstreams may read the query in several ways: a name twice or in another spelling, or another separator. */
const parametersIn = (query: string): ReadonlyMap<string, string> | undefined => {
  const parameters = new Map<string, string>()
  if (query === '') return parameters
  if (query.includes(';')) return undefined
  for (const part of query.split('&')) {
    const at = part.indexOf('=')
    const name = decoded(at === -1 ? part : part.slice(0, at))
    const value = at === -1 ? '' : decoded(part.slice(at + 1))
    if (name === undefined || value === undefined || parameters.has(name)) return undefined
    parameters.set(name, value)
  }
  return parameters
}

/** Does the request match, with the parameters that are named and no others? */
export const matchesWrite = (match: WriteMatch, method: string, path: string, query: string): boolean => {
  if (!matchesRule(match, method, path)) return false
  const parameters = parametersIn(query)
  return (
    parameters?.size === match.query.length &&
    match.query.every(({ name, value }) => {
      const text = parameters.get(name)
      return text !== undefined && (value === text || matchesSequence(value, text, '*', sameText))
    })
  )
}

const coversSegment = (item: string, element: string): boolean =>
  item === element || (element !== '**' && sameSegment(item, element))

/** Does the first rule apply to everything that the second one applies to? A pattern is compared as a path with `*` in it. */
export const coversRule = (first: RuleMatch, second: RuleMatch): boolean =>
  second.methods.every((method) => first.methods.includes(method)) &&
  matchesSequence(first.segments, second.segments, '**', coversSegment)
