import { parseAcceptEncoding } from '../../http/accept-encoding.ts'
import { parseCacheControl } from '../../http/cache-control.ts'
import { parseEntityTag, tagOfCoded } from '../../http/conditional/entity-tags.ts'
import { evaluatePreconditions } from '../../http/conditional/preconditions.ts'
import { fieldValue, type RequestFields, requestField, withoutFields } from '../../http/fields.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { CacheRead } from '../cache-read.ts'
import type { ReaderFacts } from '../conditional-response.ts'
import type { CacheEvent } from '../events.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import { type CodedForm, ownBytes, type StoredResponse, withForms } from '../store/stored-response.ts'
import { availableCodings, type Coding, compress } from './compress.ts'

/** Which forms of a response a reader takes. */
type AcceptedForms = {
  /** Those it would rather have than the uncoded one, best first. */
  readonly codings: readonly Coding[]
  readonly uncoded: boolean
}

const onlyUncoded: AcceptedForms = { codings: [], uncoded: true }

/** Clients send a handful of values; more of them are a flood. */
const rememberedValues = 64
const longestValue = 256

const readValue = (value: string, offered: readonly Coding[]): AcceptedForms => {
  const accepted = parseAcceptEncoding(value)
  const weightOf = (coding: Coding): number => accepted.weightOf(coding) ?? 0
  // Where identity is not named it is acceptable, and nothing says that it is preferred (RFC 9110 §12.5.3).
  const uncoded = accepted.weightOf('identity')
  const codings = offered
    .filter((coding) => weightOf(coding) > 0 && weightOf(coding) >= (uncoded ?? 0))
    .sort((a, b) => weightOf(b) - weightOf(a))
  return { codings, uncoded: uncoded !== 0 }
}

/** A range is one of the uncoded bytes; and a reader may forbid coding on the way (RFC 9111 §5.2.1.6). */
const takesUncodedOnly = ({ fields }: ReaderFacts): boolean =>
  fields['range'] !== undefined ||
  (fields['cache-control'] !== undefined &&
    parseCacheControl(requestField(fields, 'cache-control')).has('no-transform'))

/** Makes the function that reads what a reader accepts of the codings on offer, best one first where weights are equal. */
const createAcceptedForms = (offered: readonly Coding[]): ((reader: ReaderFacts) => AcceptedForms) => {
  const known = new Map<string, AcceptedForms>()
  return (reader) => {
    const value = requestField(reader.fields, 'accept-encoding')
    if (value === undefined || takesUncodedOnly(reader)) return onlyUncoded
    const remembered = known.get(value)
    if (remembered !== undefined) return remembered
    const accepted = readValue(value, offered)
    if (known.size >= rememberedValues) known.clear()
    if (value.length <= longestValue) known.set(value, accepted)
    return accepted
  }
}

/** Found once for each stored response: conditional readers are most of the readers of some. */
const known = new WeakMap<ResponseHead, string>()

/** The entity tag of a response as its field spells it; '' when it has none that is valid. */
export const currentTag = (response: ResponseHead): string => {
  const remembered = known.get(response)
  if (remembered !== undefined) return remembered
  const value = fieldValue(response.fields, 'etag') ?? ''
  const tag = parseEntityTag(value) === undefined ? '' : value
  known.set(response, tag)
  return tag
}

const weak = 'W/'

/** One of them weak, the other the same without that (RFC 9110 §8.8.3.2): a proxy that codes contents weakens the tags that it passes. */
const isWeakened = (longer: string, shorter: string): boolean =>
  longer.length === shorter.length + weak.length &&
  shorter.startsWith('"') &&
  longer.startsWith(weak) &&
  longer.endsWith(shorter)

/**
 * Does the reader have this very response, and know it by nothing but its tag? Then a 2xx becomes a 304, whatever dates and
 * ranges are asked for besides: If-None-Match comes before them (RFC 9110 §13.2.2).
 */
export const asksForTag = (fields: RequestFields, tag: string): boolean => {
  const asked = requestField(fields, 'if-none-match')
  return (
    tag !== '' &&
    asked !== undefined &&
    (asked === tag || isWeakened(asked, tag) || isWeakened(tag, asked)) &&
    fields['if-match'] === undefined &&
    fields['if-unmodified-since'] === undefined
  )
}

export type CompressionOptions = {
  /** Best first; none = off. */
  readonly codings: readonly Coding[]
  readonly minBytes: number
}

/** Content codings of stored responses: each is made once, beside the requests, after somebody has asked for it. */
export type Encodings = {
  /** Contents from this length on may be coded for other readers of the same; `Infinity` = none. */
  codedFrom(read: CacheRead): number
  /** The form for a reader, of those that are there. */
  formFor(stored: StoredResponse, reader: ReaderFacts): StoredResponse
  /** As `formFor`; what the reader would rather have is made for the next ones. */
  serve(stored: StoredResponse, reader: ReaderFacts): StoredResponse
}

type EncodingsOptions = CompressionOptions & {
  readonly store: MemoryStore
  readonly maxBytes: number
  readonly report: (event: CacheEvent) => void
}

/** libuv has four threads for this, name look-ups and files together. */
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

const isConfirmed = (reader: ReaderFacts, response: StoredResponse): boolean => {
  const condition: RequestFields = { 'if-none-match': reader.fields['if-none-match'] }
  return evaluatePreconditions(condition, 'GET', response, 0) === 'not-modified'
}

const matches = (reader: ReaderFacts, response: StoredResponse): boolean => {
  const condition: RequestFields = { 'if-match': reader.fields['if-match'] }
  return evaluatePreconditions(condition, 'GET', response, 0) === 'proceed'
}

export const createEncodings = (options: EncodingsOptions): Encodings => {
  const { store } = options
  const offered = availableCodings(options.codings)
  const acceptedBy = createAcceptedForms(offered)
  const coded = new WeakMap<StoredResponse, Map<Coding, StoredResponse>>()
  /** Contents that are being compressed. */
  const making = new Set<Buffer>()

  /** The same object each time, so that answers made of it can be remembered. */
  const responseOf = (stored: StoredResponse, { coding, content }: CodedForm): StoredResponse | undefined => {
    if (content === undefined) return undefined
    const known = coded.get(stored) ?? new Map<Coding, StoredResponse>()
    const response = known.get(coding) ?? codedResponse(stored, coding, content)
    if (!known.has(coding)) coded.set(stored, known.set(coding, response))
    return response
  }

  const ready = (stored: StoredResponse, coding: Coding): StoredResponse | undefined => {
    const form = stored.forms.find((one) => one.coding === coding)
    return form === undefined ? undefined : responseOf(stored, form)
  }

  /** Found by its content: the record may have been marked stale or validated meanwhile; one that was dropped stays away. */
  const keep = (stored: StoredResponse, form: CodedForm): void => {
    const variants = store.peek(stored.key)
    const current = variants.find(({ content, codable }) => codable && content === stored.content)
    if (current === undefined) return
    const grown = withForms(current, [...current.forms, form])
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
      keep(stored, { coding, content: content === undefined ? undefined : ownBytes(content) })
      const bytes = stored.content.length
      options.report({ kind: 'compressed', coding, bytes, saved: bytes - (content?.length ?? bytes) })
    } catch {
      // Out of memory, say: the next readers get it uncoded as well, and nobody tries again.
      keep(stored, { coding, content: undefined })
    } finally {
      making.delete(stored.content)
    }
  }

  /** The best form that is there. Where none is acceptable, the uncoded one all the same (RFC 9110 §12.4.1). */
  const best = (stored: StoredResponse, accepted: AcceptedForms): StoredResponse => {
    for (const coding of accepted.codings) {
      const response = ready(stored, coding)
      if (response !== undefined) return response
    }
    return stored
  }

  /** A reader that already has an acceptable form need not get another one; its 304 must carry that form's tag (RFC 9111 §4.3.4). */
  const known = (stored: StoredResponse, reader: ReaderFacts, accepted: AcceptedForms) => {
    const chosen = best(stored, accepted)
    const uncoded = accepted.uncoded ? [stored] : []
    if (reader.fields['if-none-match'] !== undefined) {
      if (asksForTag(reader.fields, currentTag(chosen))) return chosen
      const any = accepted.codings.map((coding) => codedResponse(stored, coding, stored.content))
      return [chosen, ...any, ...uncoded].find((form) => isConfirmed(reader, form)) ?? chosen
    }
    if (reader.fields['if-match'] === undefined) return chosen
    return [chosen, ...uncoded].find((form) => matches(reader, form)) ?? chosen
  }

  const formFor = (stored: StoredResponse, reader: ReaderFacts): StoredResponse =>
    stored.codable ? known(stored, reader, acceptedBy(reader)) : stored

  return {
    // Shared answers only: compressing what holds a secret tells its length (BREACH), and a caller's own part has few readers.
    codedFrom: ({ partition, policy }) =>
      offered.length > 0 && partition === 'public' && policy.profile === 'safe'
        ? options.minBytes
        : Number.POSITIVE_INFINITY,
    formFor,
    serve: (stored, reader) => {
      if (!stored.codable || reader.fields['accept-encoding'] === undefined) return stored
      const accepted = acceptedBy(reader)
      const [wanted] = accepted.codings
      if (wanted !== undefined && !stored.forms.some(({ coding }) => coding === wanted)) {
        void make(stored, wanted)
      }
      return known(stored, reader, accepted)
    },
  }
}
