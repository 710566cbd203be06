import {
  type Directives,
  deltaSeconds,
  parseCacheControl,
  qualifiedFields,
} from '../../http/cache-control.ts'
import { type FieldLines, fieldValue } from '../../http/fields.ts'
import { remembered } from '../../http/memo.ts'
import { type Member, parseDictionary } from '../../http/structured-fields.ts'

/** What a response allows a shared cache, by Cache-Control or a targeted field. Seconds; `invalid` where there is no valid number. */
export type ResponseControl = {
  /** A targeted field (RFC 9213) replaces Cache-Control and Expires. */
  readonly source: 'targeted' | 'cache-control' | 'none'
  readonly noStore: boolean
  /** Unqualified: the whole response must be validated before each reuse. */
  readonly noCache: boolean
  readonly isPrivate: boolean
  readonly isPublic: boolean
  readonly mustUnderstand: boolean
  /** must-revalidate or proxy-revalidate: never served stale. */
  readonly mustRevalidate: boolean
  /** must-revalidate alone, which also permits storing answers to credentials (RFC 9111 §3.5); proxy-revalidate does not. */
  readonly permitsCredentials: boolean
  readonly maxAge: number | 'invalid' | undefined
  readonly sMaxAge: number | 'invalid' | undefined
  readonly staleWhileRevalidate: number | 'invalid' | undefined
  readonly staleIfError: number | 'invalid' | undefined
  /** Fields that no-cache or private name (RFC 9111 §5.2.2.4, §5.2.2.7). */
  readonly notStored: readonly string[]
  readonly hasQualifiedPrivate: boolean
}

/** Most specific first (RFC 9213 §2.2). */
const targetedFields = ['trellis-cache-control', 'cdn-cache-control'] as const

const numeric: ReadonlySet<string> = new Set([
  'max-age',
  's-maxage',
  'stale-while-revalidate',
  'stale-if-error',
])
const maybeQualified: ReadonlySet<string> = new Set(['no-cache', 'private'])
const flags: ReadonlySet<string> = new Set([
  'no-store',
  'public',
  'must-revalidate',
  'proxy-revalidate',
  'must-understand',
  'no-transform',
])

type Argument =
  | { readonly kind: 'keep'; readonly argument: string | undefined }
  | { readonly kind: 'drop' | 'wrong' }

const readArgument = (key: string, member: Member): Argument => {
  if (!numeric.has(key) && !flags.has(key) && !maybeQualified.has(key)) return { kind: 'drop' }
  if (member.kind !== 'item') return { kind: 'wrong' }
  const { item } = member
  if (numeric.has(key)) {
    return item.type === 'integer' ? { kind: 'keep', argument: String(item.value) } : { kind: 'wrong' }
  }
  if (item.type === 'boolean') return item.value ? { kind: 'keep', argument: undefined } : { kind: 'drop' }
  return maybeQualified.has(key) && item.type === 'string'
    ? { kind: 'keep', argument: item.value }
    : { kind: 'wrong' }
}

/** undefined when the field is empty, no dictionary, or has a value of the wrong type: it then counts as absent (RFC 9213 §2.1). */
const parseTargeted = (value: string): Directives | undefined => {
  const members = parseDictionary(value)
  if (members === undefined || members.size === 0) return undefined
  const directives = new Map<string, string | undefined>()
  for (const [key, member] of members) {
    const read = readArgument(key, member)
    if (read.kind === 'wrong') return undefined
    if (read.kind === 'keep') directives.set(key, read.argument)
  }
  return directives
}

const findTargeted = (fields: FieldLines): Directives | undefined => {
  for (const name of targetedFields) {
    const value = fieldValue(fields, name)
    const directives = value === undefined ? undefined : parseTargeted(value)
    if (directives !== undefined) return directives
  }
  return undefined
}

const controlBy = (source: ResponseControl['source'], directives: Directives): ResponseControl => {
  const noCacheFields = qualifiedFields(directives, 'no-cache')
  const privateFields = qualifiedFields(directives, 'private')
  return {
    source,
    noStore: directives.has('no-store'),
    noCache: directives.has('no-cache') && noCacheFields === undefined,
    isPrivate: directives.has('private') && privateFields === undefined,
    isPublic: directives.has('public'),
    mustUnderstand: directives.has('must-understand'),
    mustRevalidate: directives.has('must-revalidate') || directives.has('proxy-revalidate'),
    permitsCredentials:
      directives.has('must-revalidate') || directives.has('public') || directives.has('s-maxage'),
    maxAge: deltaSeconds(directives, 'max-age'),
    sMaxAge: deltaSeconds(directives, 's-maxage'),
    staleWhileRevalidate: deltaSeconds(directives, 'stale-while-revalidate'),
    staleIfError: deltaSeconds(directives, 'stale-if-error'),
    notStored: [...(noCacheFields ?? []), ...(privateFields ?? [])],
    hasQualifiedPrivate: privateFields !== undefined,
  }
}

const noControl: ResponseControl = controlBy('none', parseCacheControl(undefined))
const byCacheControl = remembered((value) => controlBy('cache-control', parseCacheControl(value)))

const readControl = (fields: FieldLines): ResponseControl => {
  const targeted = findTargeted(fields)
  if (targeted !== undefined) return controlBy('targeted', targeted)
  const general = fieldValue(fields, 'cache-control')
  return general === undefined ? noControl : byCacheControl(general)
}

let last: { readonly fields: FieldLines; readonly control: ResponseControl } = {
  fields: [],
  control: noControl,
}

/** A response is read up to three times in a row: whether it may be stored, for how long, and what of it may not. */
export const responseControl = (fields: FieldLines): ResponseControl => {
  if (last.fields !== fields) last = { fields, control: readControl(fields) }
  return last.control
}
