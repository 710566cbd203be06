import { formText } from '../../http/bodies/form.ts'
import { atOnce, type Pieces } from '../../http/bodies/turns.ts'
import { decodeFormText, isUnreadable } from '../../http/form-text.ts'
import type { Invalid, RequestFault, ValidationInput } from '../../service/contract.ts'
import { pointerStep } from '../document/bundle.ts'
import type { BodyContent, Operation, Parameter } from '../document/operation.ts'
import { contentFor } from './openapi-operation.ts'
import {
  brokenEncoding,
  decodedText,
  ownNames,
  ownsPair,
  type Pair,
  pairsOf,
  queryTexts,
} from './parameter-text.ts'
import { createReadAlike } from './read-alike.ts'
import { type ExactIntegers, noExactIntegers } from './schema-checker.ts'
import { maxFaults, type SchemaFault } from './schema-faults.ts'
import { readExactJson, readValue, type ValueParts } from './values.ts'

const titles: Readonly<Record<RequestFault['code'], string>> = {
  unreadable_query: 'The query is not valid percent-encoded UTF-8.',
  too_many_parameters: 'The query has more parameters than allowed.',
  invalid_parameter: 'A parameter does not fit the description of the operation.',
  missing_body: 'The operation needs a body.',
  invalid_body: 'The body does not fit the description of the operation.',
  unsupported_content_type: 'The operation does not take a body of this type.',
}

export const faultOf = (
  code: RequestFault['code'],
  subject = '',
  errors: RequestFault['errors'] = [],
  status = 400,
): RequestFault => ({ kind: 'fault', status, code, subject, errors })

/** RFC 9457. It repeats no value of the request. */
export const problemOf = ({ code, status, errors }: RequestFault): Invalid => ({
  kind: 'invalid',
  status,
  code,
  body: {
    type: 'about:blank',
    title: titles[code],
    status,
    code,
    ...(errors.length === 0 ? {} : { errors }),
  },
})

export const asFragment = (pointer: string): string => `#${encodeURI(pointer)}`

const invalid = (pointer: string, detail: string, subject = `body${pointer}`): RequestFault =>
  faultOf('invalid_body', subject, [{ pointer: asFragment(pointer), detail }])

/** The subject is where the first is. */
const refusalOf = (faults: readonly SchemaFault[]): RequestFault | undefined => {
  const [first] = faults
  if (first === undefined) return undefined
  const errors = faults
    .slice(0, maxFaults)
    .map(({ pointer, detail }) => ({ pointer: asFragment(pointer), detail }))
  return faultOf('invalid_body', `body${first.at ?? first.pointer}`, errors)
}

const maxParts = 10_000

function* checkValue(
  { schema }: BodyContent,
  value: unknown,
  exact: ExactIntegers,
  octets: number,
  { checker }: ValueParts,
): Pieces<RequestFault | undefined> {
  yield
  return refusalOf(yield* checker.checkInPieces(schema, value, exact, octets))
}

/** A member of a form is written as a parameter of a query is. */
const memberOf = ({ members }: BodyContent, name: string, schema: Parameter['schema']): Parameter => ({
  ...(members.get(name) ?? { style: 'form', explode: true, encoding: 'style' }),
  name,
  location: 'query',
  required: false,
  allowEmptyValue: false,
  schema,
})

type FormReading = {
  readonly value: Map<string, unknown>
  /** All members have a style that describes them; otherwise the whole is unknown. */
  readonly isRead: boolean
}

const startOf = (name: string): string => name.split('[', 1)[0] as string

/** Pairs by their names before a bracket: a form may have thousands, and its description as many members. */
const byStart = (pairs: readonly Pair[]): ReadonlyMap<string, readonly Pair[]> => {
  const groups = new Map<string, Pair[]>()
  for (const pair of pairs) {
    const start = startOf(pair.name)
    const group = groups.get(start)
    if (group === undefined) groups.set(start, [pair])
    else group.push(pair)
  }
  return groups
}

/** As it is written, where it cannot be decoded. */
const textOf = ({ value = '' }: Pair): string => {
  const text = decodeFormText(value)
  return isUnreadable(text) ? value : text
}

/** Each undeclared name is one member, of the schema for these; where there is none, several values are a list. */
const othersOf = (
  pairs: readonly Pair[],
  claimed: ReadonlySet<Pair>,
): ReadonlyMap<string, readonly Pair[]> => {
  const groups = new Map<string, Pair[]>()
  for (const pair of pairs) {
    if (claimed.has(pair)) continue
    const group = groups.get(pair.name)
    if (group === undefined) groups.set(pair.name, [pair])
    else group.push(pair)
  }
  return groups
}

/** Pairs that are read in one piece: about a millisecond. */
const pairsOfPiece = 256

function* aliasFault(
  names: Iterable<string>,
  otherNames: Iterable<string>,
): Pieces<RequestFault | undefined> {
  const readAlike = createReadAlike(names)
  let left = pairsOfPiece
  for (const name of otherNames) {
    const alike = readAlike(name)
    if (alike !== undefined)
      return invalid(`/${pointerStep(alike)}`, 'is sent by a name that servers may read as this one')
    left -= 1
    if (left > 0) continue
    left = pairsOfPiece
    yield
  }
  return undefined
}

function* readForm(
  pairs: readonly Pair[],
  described: BodyContent,
  parts: ValueParts,
): Pieces<FormReading | RequestFault> {
  const value = new Map<string, unknown>()
  const claimed = new Set<Pair>()
  const faults: SchemaFault[] = []
  let isRead = true
  const read = (name: string, schema: Parameter['schema'], ownPairs: readonly Pair[]): void => {
    if (faults.length === maxFaults) return
    const parameter = memberOf(described, name, schema)
    const reading = readValue(queryTexts(parameter, parts.shapeOf(schema), ownPairs), parameter, parts)
    if (reading.kind === 'absent') return
    if (reading.kind === 'fault') {
      const { pointer, detail } = reading.fault
      faults.push({ pointer: `/${pointerStep(name)}${pointer}`, detail })
      return
    }
    isRead &&= reading.value !== undefined
    value.set(name, reading.value)
  }
  const pairsByStart = byStart(pairs)
  const { properties, additional } = parts.shapeOf(described.schema)
  const ownedNames = new Set<string>()
  for (const [name, schema] of properties) {
    const parameter = memberOf(described, name, schema)
    const shape = parts.shapeOf(schema)
    const names = ownNames(parameter, shape)
    names.forEach((ownedName) => {
      ownedNames.add(ownedName)
    })
    const starts = new Set(names.map(startOf))
    const ownPairs = [...starts]
      .flatMap((start) => pairsByStart.get(start) ?? [])
      .filter((pair) => ownsPair(parameter, shape, pair))
    for (const pair of ownPairs) claimed.add(pair)
    read(name, schema, ownPairs)
  }
  const otherPairs = othersOf(pairs, claimed)
  yield
  const alike = yield* aliasFault(ownedNames, otherPairs.keys())
  if (alike !== undefined && faults.length === 0) return alike
  let left = pairsOfPiece
  for (const [name, ownPairs] of otherPairs) {
    left -= ownPairs.length
    if (left <= 0) {
      left = pairsOfPiece
      yield
    }
    if (typeof additional === 'boolean') {
      const texts = ownPairs.map((pair) => textOf(pair))
      value.set(name, texts.length > 1 ? texts : texts[0])
      continue
    }
    read(name, additional, ownPairs)
  }
  return refusalOf(faults) ?? { value, isRead }
}

const hasTooManyParts = (text: string): boolean => {
  let count = 1
  for (let at = text.indexOf('&'); at >= 0 && count <= maxParts; at = text.indexOf('&', at + 1)) count += 1
  return count > maxParts
}

function* checkForm(
  content: Buffer,
  described: BodyContent,
  parts: ValueParts,
): Pieces<RequestFault | undefined> {
  const text = formText(content, maxParts + 1)
  yield
  const pairs = hasTooManyParts(text) ? undefined : pairsOf(text)
  if (pairs === undefined) return invalid('', 'is not a form that can be read')
  yield
  const reading = yield* readForm(pairs, described, parts)
  if ('kind' in reading) return reading
  const { value, isRead } = reading
  return isRead
    ? yield* checkValue(described, Object.fromEntries(value), noExactIntegers, content.length, parts)
    : undefined
}

function* checkJson(
  content: Buffer,
  described: BodyContent,
  parts: ValueParts,
): Pieces<RequestFault | undefined> {
  const reading = yield* readExactJson(content, parts)
  return reading.kind === 'refused'
    ? invalid('', reading.detail, reading.subject)
    : yield* checkValue(described, reading.value, reading.exact, content.length, parts)
}

/** The query as the one value that `in: querystring` describes. */
export const checkQueryString = (
  { queryString }: Operation,
  query: string,
  parts: ValueParts,
): RequestFault | undefined => {
  if (queryString === undefined) return undefined
  const { name, required, content } = queryString
  const at = (errors: RequestFault['errors']): RequestFault =>
    faultOf(
      'invalid_parameter',
      `querystring.${name}`,
      errors.map((error) => ({ ...error, parameter: name, in: 'querystring' })),
    )
  if (query === '') return required ? at([{ pointer: '#', detail: 'is required' }]) : undefined
  const text = decodedText(query, false)
  if (text === undefined) return at([{ pointer: '#', detail: brokenEncoding }])
  const fault =
    content.reading === 'form'
      ? atOnce(checkForm(Buffer.from(query), content, parts))
      : content.reading === 'json'
        ? atOnce(checkJson(Buffer.from(text), content, parts))
        : undefined
  return fault && at(fault.errors)
}

/** RFC 9112 §6.3. */
const isFramed = (fields: NonNullable<ValidationInput['headers']>): boolean =>
  (fields['content-length'] !== undefined && fields['content-length'] !== '0') ||
  fields['transfer-encoding'] !== undefined

/**
 * Content that is framed and not here streams unread. Without fields a GET or a QUERY is a target alone, as for a purge, and any other
 * request is an item of a batch, whose content is here.
 */
const isMissing = (operation: Operation, { method, content, headers: fields }: ValidationInput): boolean => {
  if (operation.body?.required !== true) return false
  return fields === undefined
    ? method !== 'GET' && method !== 'QUERY'
    : !(content === undefined && isFramed(fields))
}

/**
 * A body is read as UTF-8 (RFC 8259 §8.1). Frameworks decode it by the charset that it names, and in UTF-7 or Shift_JIS the same bytes
 * have other quotation marks: the upstream would read members that were not checked. The Latin ones, which some clients name by
 * themselves, have the signs of JSON and of forms as ASCII has them.
 */
const namesOtherCharset = /;\s*charset(?!\s*=\s*"?(?:utf-?8|us-ascii|iso-8859-1|windows-1252)"?\s*(?:;|$))/i

const notUtf8 = faultOf(
  'unsupported_content_type',
  'charset',
  [{ pointer: '#', detail: 'must be in UTF-8' }],
  415,
)

/** The faults of a body; bodies that are neither JSON nor forms are checked by type and size only. */
export function* checkBody(
  operation: Operation,
  input: ValidationInput,
  parts: ValueParts,
): Pieces<RequestFault | undefined> {
  const { content, contentType } = input
  if (content === undefined || content.length === 0) {
    return isMissing(operation, input) ? faultOf('missing_body') : undefined
  }
  const described = contentFor(operation, contentType)
  if (described?.reading !== 'size' && namesOtherCharset.test(contentType ?? '')) return notUtf8
  switch (described?.reading) {
    case undefined:
      return faultOf('unsupported_content_type', '', [], 415)
    case 'form':
      return yield* checkForm(content, described, parts)
    case 'json':
      return yield* checkJson(content, described, parts)
    case 'size':
      return undefined
  }
}
