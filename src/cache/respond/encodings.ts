import {
  digestsOfContent,
  evaluatePreconditions,
  isConditional,
  parseEntityTag,
  preconditionResponse,
} from '../../http/conditional/preconditions.ts'
import { partialContent, rangeNotSatisfiable, rangeOf } from '../../http/conditional/ranges.ts'
import {
  type AcceptedForms,
  acceptedForms,
  availableCodings,
  type Coding,
  codedHeaders,
  compress,
} from '../../http/content-coding.ts'
import {
  type HeaderLines,
  hasHeader,
  headerValue,
  type RequestHeaders,
  requestHeader,
  withoutHeaders,
} from '../../http/headers/header-lines.ts'
import { memoize } from '../../http/memo.ts'
import { discard, type GatewayResponse, type ResponseHead } from '../../http/message.ts'
import { isGet, isHead } from '../../http/methods.ts'
import { ownBytes } from '../../http/retained.ts'
import { type CacheRead, type ReaderFacts, takesUncodedOnly } from '../cache-read.ts'
import type { CacheEvent } from '../events.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import type { CodedForm, StoredResponse } from '../store/stored-response.ts'

/** Without range and precondition: one response serves all such readers. */
export const takesWhole = (reader: ReaderFacts): boolean =>
  isGet(reader.method) && reader.headers['range'] === undefined && !isConditional(reader.headers)

const ranged = (
  reader: ReaderFacts,
  whole: GatewayResponse,
  content: Buffer,
  now: number,
): GatewayResponse => {
  const selection = rangeOf(reader.headers, whole, content.length, now)
  switch (selection.kind) {
    case 'whole':
      return whole
    case 'unsatisfiable':
      return { ...rangeNotSatisfiable(whole, content.length), content: undefined }
    case 'parts': {
      const part = partialContent(whole, content, selection.ranges)
      return { ...part.head, content: part.content }
    }
  }
}

/** A response in the form that the reader gets: preconditions first, then ranges (RFC 9110 §13.2.2), no content for HEAD. */
export const responseFor = (reader: ReaderFacts, whole: GatewayResponse, now: number): GatewayResponse => {
  const instead = preconditionResponse(reader, whole, now)
  if (instead !== undefined) {
    discard(whole.content)
    return instead
  }
  if (isHead(reader.method)) {
    discard(whole.content)
    const { headers } = whole
    return {
      ...whole,
      // The usual array stays: its text is prepared.
      headers: hasHeader(headers, digestsOfContent) ? withoutHeaders(headers, digestsOfContent) : headers,
      content: undefined,
    }
  }
  const wantsRange = requestHeader(reader.headers, 'range') !== undefined
  return wantsRange && Buffer.isBuffer(whole.content) ? ranged(reader, whole, whole.content, now) : whole
}

const onlyUncoded: AcceptedForms<Coding> = { codings: [], uncoded: true }

/** Parsed once per stored response, because some get mostly conditional requests. */
const tags = new WeakMap<ResponseHead, string>()

/** The entity tag of a response as its header spells it; '' when it has none that is valid. */
export const currentTag = (response: ResponseHead): string => {
  const knownTag = tags.get(response)
  if (knownTag !== undefined) return knownTag
  const value = headerValue(response.headers, 'etag') ?? ''
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
export const asksForTag = (headers: RequestHeaders, tag: string): boolean => {
  const condition = requestHeader(headers, 'if-none-match')
  return (
    tag !== '' &&
    condition !== undefined &&
    (condition === tag || isWeakened(condition, tag) || isWeakened(tag, condition)) &&
    headers['if-match'] === undefined &&
    headers['if-unmodified-since'] === undefined
  )
}

export type CompressionOptions = {
  /** Best first; none = off. */
  readonly codings: readonly Coding[]
  readonly minBytes: number
}

type EncodingsOptions = CompressionOptions & {
  readonly store: MemoryStore
  readonly report: (event: CacheEvent) => void
}

/** libuv's four threads also do name look-ups and files. */
const maxAtOnce = 2

const lengthened = (headers: HeaderLines, coding: Coding, content: Buffer): HeaderLines => [
  ...codedHeaders(headers, coding),
  ...['Content-Length', String(content.length)],
]

const codedResponse = (stored: StoredResponse, coding: Coding, content: Buffer): StoredResponse => ({
  ...stored,
  content,
  headers: lengthened(stored.headers, coding, content),
  sentHeaders: stored.sentHeaders && lengthened(stored.sentHeaders, coding, content),
})

const meets = (
  reader: ReaderFacts,
  response: StoredResponse,
  name: 'if-match' | 'if-none-match',
): boolean => {
  const condition: RequestHeaders = { [name]: reader.headers[name] }
  const outcome = evaluatePreconditions(condition, 'GET', response, 0)
  return outcome === (name === 'if-match' ? 'proceed' : 'not-modified')
}

/** Content codings of stored responses: each is made once, for the first request for it. */
export class Encodings {
  readonly #options: EncodingsOptions
  readonly #store: MemoryStore
  readonly #offered: readonly ('br' | 'gzip' | 'zstd')[]
  /** Clients send a handful of values. */
  readonly #acceptedByValue: (text: string) => AcceptedForms<'br' | 'gzip' | 'zstd'>
  /** Forms that are made now, by the content they are made of. */
  readonly #making = new Map<Buffer, { readonly coding: Coding; readonly form: Promise<CodedForm> }>()
  /** Contents whose forms do not fit into the cache: they are not compressed again for each reader. */
  readonly #unfit = new WeakSet<Buffer>()

  constructor(options: EncodingsOptions) {
    this.#options = options
    this.#store = options.store
    this.#offered = availableCodings(options.codings)
    this.#acceptedByValue = memoize((value) => acceptedForms(value, this.#offered), 64)
  }

  // A caller's own responses only where the service allows it: the length of a compressed secret can reveal it (BREACH).
  /** Contents from this length on may be coded; `Infinity`: none. */
  codedFrom({ partition, compresses }: CacheRead): number {
    return this.#offered.length > 0 && (partition === 'public' || compresses === true)
      ? this.#options.minBytes
      : Number.POSITIVE_INFINITY
  }

  /**
   * The best form for the reader. Without a promise where a coded form is there, none is wanted, or too much is compressed now;
   * otherwise the form that the reader prefers is made first.
   */
  formFor(stored: StoredResponse, reader: ReaderFacts): StoredResponse | Promise<StoredResponse> {
    if (!stored.codable || reader.headers['accept-encoding'] === undefined) return stored
    const accepted = this.#acceptedBy(reader)
    const [preferredCoding] = accepted.codings
    if (preferredCoding === undefined || this.#isMade(stored, preferredCoding))
      return this.#formOf(stored, reader, accepted)
    const form = this.#make(stored, preferredCoding)
    const bestForm = this.#formOf(stored, reader, accepted)
    // With another coded form, or with a precondition, which mostly leads to a 304, there is nothing to wait for.
    if (form === undefined || bestForm !== stored || isConditional(reader.headers)) return bestForm
    return form.then((codedForm) =>
      codedForm.content === undefined ? stored : codedResponse(stored, preferredCoding, codedForm.content),
    )
  }

  #acceptedBy(reader: ReaderFacts): AcceptedForms<Coding> {
    const value = requestHeader(reader.headers, 'accept-encoding')
    return value === undefined || takesUncodedOnly(reader.headers)
      ? onlyUncoded
      : this.#acceptedByValue(value)
  }

  #formIn(stored: StoredResponse, coding: Coding): StoredResponse | undefined {
    const form = stored.forms.find((codedForm) => codedForm.coding === coding)
    if (form?.content === undefined) return undefined
    form.response ??= codedResponse(stored, coding, form.content)
    return form.response
  }

  /** The stored response may have been replaced by a validation or removed meanwhile: it is found by its content. */
  #addForm(stored: StoredResponse, form: CodedForm): void {
    const current = this.#store
      .peek(stored.key)
      .find(({ content, codable }) => codable && content === stored.content)
    if (current !== undefined && !this.#store.addForm(current, form)) this.#unfit.add(current.content)
  }

  /** Never rejects: readers without a form get the uncoded one. */
  async #makeForm(stored: StoredResponse, coding: Coding): Promise<CodedForm> {
    try {
      const content = await compress(stored.content, coding)
      const form = { coding, content: content === undefined ? undefined : ownBytes(content) }
      this.#addForm(stored, form)
      const bytes = stored.content.length
      this.#options.report({ kind: 'compressed', coding, bytes, saved: bytes - (content?.length ?? bytes) })
      return form
    } catch {
      // For example out of memory; it is not retried.
      this.#unfit.add(stored.content)
      return { coding, content: undefined }
    } finally {
      this.#making.delete(stored.content)
    }
  }

  /** Undefined when too much is compressed now. */
  #make(stored: StoredResponse, coding: Coding): Promise<CodedForm> | undefined {
    const now = this.#making.get(stored.content)
    if (now !== undefined) return now.coding === coding ? now.form : undefined
    if (this.#making.size >= maxAtOnce || this.#unfit.has(stored.content)) return undefined
    const form = this.#makeForm(stored, coding)
    this.#making.set(stored.content, { coding, form })
    return form
  }

  /** If no form is acceptable, the uncoded one (RFC 9110 §12.4.1). */
  #best(stored: StoredResponse, accepted: AcceptedForms<Coding>): StoredResponse {
    for (const coding of accepted.codings) {
      const response = this.#formIn(stored, coding)
      if (response !== undefined) return response
    }
    return stored
  }

  /** A client that has an acceptable form keeps it: the 304 must carry the tag of that form (RFC 9111 §4.3.4). */
  #formOf(stored: StoredResponse, reader: ReaderFacts, accepted: AcceptedForms<Coding>): StoredResponse {
    const bestForm = this.#best(stored, accepted)
    const { headers } = reader
    const isRevalidation = headers['if-none-match'] !== undefined
    if (isRevalidation ? asksForTag(headers, currentTag(bestForm)) : headers['if-match'] === undefined)
      return bestForm
    const coded = accepted.codings.map((coding) => codedResponse(stored, coding, stored.content))
    const forms = [bestForm, ...(isRevalidation ? coded : []), ...(accepted.uncoded ? [stored] : [])]
    const name = isRevalidation ? 'if-none-match' : 'if-match'
    return forms.find((form) => meets(reader, form, name)) ?? bestForm
  }

  #isMade(stored: StoredResponse, preferredCoding: Coding): boolean {
    return stored.forms.some(({ coding }) => coding === preferredCoding)
  }
}
