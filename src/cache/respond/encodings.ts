import { parseAcceptEncoding } from '../../http/accept-encoding.ts'
import { parseCacheControl } from '../../http/caching-fields.ts'
import { parseEntityTag, tagOfCoded } from '../../http/conditional/entity-tags.ts'
import {
  evaluatePreconditions,
  isConditional,
  notModified,
  preconditionFailed,
} from '../../http/conditional/preconditions.ts'
import { partialContent, rangeNotSatisfiable, rangeOf } from '../../http/conditional/ranges.ts'
import { remembered } from '../../http/memo.ts'
import {
  discard,
  fieldValue,
  type GatewayResponse,
  type RequestFields,
  type ResponseHead,
  requestField,
  withoutFields,
} from '../../http/message.ts'
import type { CacheRead } from '../cache-read.ts'
import type { CacheEvent } from '../events.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import { type CodedForm, ownBytes, type StoredResponse, withCodedForms } from '../store/stored-response.ts'
import { availableCodings, type Coding, compress } from './compress.ts'

/** The parts of a read that decide the form of its response. */
export type ReaderFacts = { readonly method: 'GET' | 'HEAD'; readonly fields: RequestFields }

/** Without range and precondition: one response serves all such readers. */
export const takesWhole = (reader: ReaderFacts): boolean =>
  reader.method === 'GET' && reader.fields['range'] === undefined && !isConditional(reader.fields)

const withoutContent = (head: ResponseHead): GatewayResponse => ({
  ...head,
  content: undefined,
})

const ranged = (
  reader: ReaderFacts,
  whole: GatewayResponse,
  content: Buffer,
  now: number,
): GatewayResponse => {
  const selection = rangeOf(reader.fields, whole, content.length, now)
  switch (selection.kind) {
    case 'whole':
      return whole
    case 'unsatisfiable':
      return withoutContent(rangeNotSatisfiable(whole, content.length))
    case 'parts': {
      const part = partialContent(whole, content, selection.ranges)
      return { ...part.head, content: part.content }
    }
  }
}

/** The 304 or 412 that the reader's preconditions lead to; undefined when they hold. */
export const preconditionResponse = (
  reader: ReaderFacts,
  response: ResponseHead,
  now: number,
): GatewayResponse | undefined => {
  if (!isConditional(reader.fields)) return undefined
  switch (evaluatePreconditions(reader.fields, reader.method, response, now)) {
    case 'not-modified':
      return withoutContent(notModified(response))
    case 'failed':
      return withoutContent(preconditionFailed(response))
    case 'proceed':
      return undefined
  }
}

/** A response in the form that the reader gets: preconditions first, then ranges (RFC 9110 §13.2.2), no content for HEAD. */
export const responseFor = (reader: ReaderFacts, whole: GatewayResponse, now: number): GatewayResponse => {
  const instead = preconditionResponse(reader, whole, now)
  if (instead !== undefined) {
    discard(whole.content)
    return instead
  }
  if (reader.method === 'HEAD') {
    discard(whole.content)
    return { ...whole, content: undefined }
  }
  const wantsRange = requestField(reader.fields, 'range') !== undefined
  return wantsRange && Buffer.isBuffer(whole.content) ? ranged(reader, whole, whole.content, now) : whole
}

/** The meaning of an Accept-Encoding field. */
type AcceptedForms = {
  /** Codings that the client prefers to the uncoded form, best first. */
  readonly codings: readonly Coding[]
  readonly uncoded: boolean
}

const onlyUncoded: AcceptedForms = { codings: [], uncoded: true }

/** With equal weights, the first of `offered` is best. */
const acceptedForms = (value: string, offered: readonly Coding[]): AcceptedForms => {
  const accepted = parseAcceptEncoding(value)
  const weightOf = (coding: Coding): number => accepted.weightOf(coding) ?? 0
  // If identity is not listed, it is acceptable but not preferred (RFC 9110 §12.5.3).
  const uncoded = accepted.weightOf('identity')
  const codings = offered
    .filter((coding) => weightOf(coding) > 0 && weightOf(coding) >= (uncoded ?? 0))
    .sort((a, b) => weightOf(b) - weightOf(a))
  return { codings, uncoded: uncoded !== 0 }
}

/** Ranges refer to the uncoded bytes; the request may also have no-transform (RFC 9111 §5.2.1.6). */
const takesUncodedOnly = ({ fields }: ReaderFacts): boolean =>
  fields['range'] !== undefined ||
  (fields['cache-control'] !== undefined &&
    parseCacheControl(requestField(fields, 'cache-control')).has('no-transform'))

/** Parsed once per stored response, because some get mostly conditional requests. */
const tags = new WeakMap<ResponseHead, string>()

/** The entity tag of a response as its field spells it; '' when it has none that is valid. */
export const currentTag = (response: ResponseHead): string => {
  const known = tags.get(response)
  if (known !== undefined) return known
  const value = fieldValue(response.fields, 'etag') ?? ''
  const tag = parseEntityTag(value) === undefined ? '' : value
  tags.set(response, tag)
  return tag
}

const weak = 'W/'

/** Is `longer` the weak form of `shorter` (RFC 9110 §8.8.3.2)? A proxy that codes contents weakens the tags that it passes on. */
const isWeakened = (longer: string, shorter: string): boolean =>
  longer.length === shorter.length + weak.length &&
  shorter.startsWith('"') &&
  longer.startsWith(weak) &&
  longer.endsWith(shorter)

/**
 * Is the tag the only condition, and does it match? Then a 2xx becomes a 304, whatever dates and ranges the request has: If-None-
 * Match takes precedence (RFC 9110 §13.2.2).
 */
export const asksForTag = (fields: RequestFields, tag: string): boolean => {
  const condition = requestField(fields, 'if-none-match')
  return (
    tag !== '' &&
    condition !== undefined &&
    (condition === tag || isWeakened(condition, tag) || isWeakened(tag, condition)) &&
    fields['if-match'] === undefined &&
    fields['if-unmodified-since'] === undefined
  )
}

export type CompressionOptions = {
  /** Best first; none = off. */
  readonly codings: readonly Coding[]
  readonly minBytes: number
}

/** Content codings of stored responses: each is made once, in the background, after the first request for it. */
export type Encodings = {
  /** Contents from this length on may be coded; `Infinity`: none. */
  codedFrom(read: CacheRead): number
  /** The best of the forms that have been made. */
  formFor(stored: StoredResponse, reader: ReaderFacts): StoredResponse
  /** As `formFor`; starts to make the form that the reader prefers, for the next ones. */
  formOrEncode(stored: StoredResponse, reader: ReaderFacts): StoredResponse
}

type EncodingsOptions = CompressionOptions & {
  readonly store: MemoryStore
  readonly maxBytes: number
  readonly report: (event: CacheEvent) => void
}

/** libuv's four threads also do name look-ups and files. */
const mostAtOnce = 2

const ofUncoded: ReadonlySet<string> = new Set(['etag', 'content-length', 'accept-ranges'])

const codedResponse = (stored: StoredResponse, coding: Coding, content: Buffer): StoredResponse => ({
  ...stored,
  content,
  fields: [
    ...withoutFields(stored.fields, ofUncoded),
    'ETag',
    tagOfCoded(fieldValue(stored.fields, 'etag') ?? '', coding),
    'Content-Encoding',
    coding,
    'Content-Length',
    String(content.length),
  ],
})

const meets = (
  reader: ReaderFacts,
  response: StoredResponse,
  name: 'if-match' | 'if-none-match',
): boolean => {
  const condition: RequestFields = { [name]: reader.fields[name] }
  const outcome = evaluatePreconditions(condition, 'GET', response, 0)
  return outcome === (name === 'if-match' ? 'proceed' : 'not-modified')
}

export const createEncodings = (options: EncodingsOptions): Encodings => {
  const { store } = options
  const offered = availableCodings(options.codings)
  /** Clients send a handful of values. */
  const acceptedByValue = remembered((value) => acceptedForms(value, offered), 64)
  const acceptedBy = (reader: ReaderFacts): AcceptedForms => {
    const value = requestField(reader.fields, 'accept-encoding')
    return value === undefined || takesUncodedOnly(reader) ? onlyUncoded : acceptedByValue(value)
  }
  const codedResponses = new WeakMap<StoredResponse, Map<Coding, StoredResponse>>()
  /** Contents that are compressed now. */
  const making = new Set<Buffer>()

  /** The same object each time, so that prepared hits can be kept on it. */
  const responseOf = (stored: StoredResponse, { coding, content }: CodedForm): StoredResponse | undefined => {
    if (content === undefined) return undefined
    const known = codedResponses.get(stored) ?? new Map<Coding, StoredResponse>()
    const response = known.get(coding) ?? codedResponse(stored, coding, content)
    if (!known.has(coding)) codedResponses.set(stored, known.set(coding, response))
    return response
  }

  const formIn = (stored: StoredResponse, coding: Coding): StoredResponse | undefined => {
    const form = stored.forms.find((one) => one.coding === coding)
    return form === undefined ? undefined : responseOf(stored, form)
  }

  /** The stored response may have been replaced by a validation or removed meanwhile: it is found by its content. */
  const addForm = (stored: StoredResponse, form: CodedForm): void => {
    const variants = store.peek(stored.key)
    const current = variants.find(({ content, codable }) => codable && content === stored.content)
    if (current === undefined) return
    const grown = withCodedForms(current, [...current.forms, form])
    const bytes = variants.reduce((sum, each) => sum + each.bytes, grown.bytes - current.bytes)
    if (bytes > options.maxBytes) return
    store.replace(
      stored.key,
      variants.map((each) => (each === current ? grown : each)),
    )
  }

  const make = async (stored: StoredResponse, coding: Coding): Promise<void> => {
    if (making.size >= mostAtOnce || making.has(stored.content)) return
    making.add(stored.content)
    try {
      const content = await compress(stored.content, coding)
      addForm(stored, { coding, content: content === undefined ? undefined : ownBytes(content) })
      const bytes = stored.content.length
      options.report({ kind: 'compressed', coding, bytes, saved: bytes - (content?.length ?? bytes) })
    } catch {
      // For example out of memory; it is not retried.
      addForm(stored, { coding, content: undefined })
    } finally {
      making.delete(stored.content)
    }
  }

  /** If no form is acceptable, the uncoded one (RFC 9110 §12.4.1). */
  const best = (stored: StoredResponse, accepted: AcceptedForms): StoredResponse => {
    for (const coding of accepted.codings) {
      const response = formIn(stored, coding)
      if (response !== undefined) return response
    }
    return stored
  }

  /** A client that has an acceptable form keeps it: the 304 must carry the tag of that form (RFC 9111 §4.3.4). */
  const formOf = (stored: StoredResponse, reader: ReaderFacts, accepted: AcceptedForms) => {
    const chosen = best(stored, accepted)
    const { fields } = reader
    const isRevalidation = fields['if-none-match'] !== undefined
    if (isRevalidation ? asksForTag(fields, currentTag(chosen)) : fields['if-match'] === undefined)
      return chosen
    const coded = accepted.codings.map((coding) => codedResponse(stored, coding, stored.content))
    const forms = [chosen, ...(isRevalidation ? coded : []), ...(accepted.uncoded ? [stored] : [])]
    const name = isRevalidation ? 'if-none-match' : 'if-match'
    return forms.find((form) => meets(reader, form, name)) ?? chosen
  }

  const formFor = (stored: StoredResponse, reader: ReaderFacts): StoredResponse =>
    stored.codable ? formOf(stored, reader, acceptedBy(reader)) : stored

  return {
    // Public responses only: the compressed length of a secret reveals it (BREACH), and a caller's own partition has few readers.
    codedFrom: ({ partition, policy }) =>
      offered.length > 0 && partition === 'public' && policy.profile === 'safe'
        ? options.minBytes
        : Number.POSITIVE_INFINITY,
    formFor,
    formOrEncode: (stored, reader) => {
      if (!stored.codable || reader.fields['accept-encoding'] === undefined) return stored
      const accepted = acceptedBy(reader)
      const [wanted] = accepted.codings
      if (wanted !== undefined && !stored.forms.some(({ coding }) => coding === wanted)) {
        void make(stored, wanted)
      }
      return formOf(stored, reader, accepted)
    },
  }
}
