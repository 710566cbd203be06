import { pipeline, type Readable } from 'node:stream'
import { takesUncodedOnly } from '../cache/cache-read.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { addCount } from '../http/bounds/counts.ts'
import { parseEntityTagList, tagOfCoded } from '../http/conditional/preconditions.ts'
import {
  acceptedForms,
  codedHeaders,
  compress as compressed,
  createCoder,
  mayBeCoded,
  type StreamCoding,
  withVaryByCoding,
} from '../http/content-coding.ts'
import {
  type HeaderLines,
  headerValue,
  type RequestHeaders,
  requestHeader,
  withHeader,
  withoutHeaders,
} from '../http/headers/header-lines.ts'
import { memoize } from '../http/memo.ts'
import type { GatewayRequest, GatewayResponse, ResponseOrPromise } from '../http/message.ts'
import { isHead } from '../http/methods.ts'
import type { ValidatedContext } from './request-context.ts'

export type CompressOptions = {
  /** Best first. */
  readonly codings: readonly StreamCoding[]
  /** Shorter contents are left as they are. */
  readonly minBytes: number
}

/** Responses that are compressed at once; each has a window of up to 256 KiB and some tables. Beyond that they are sent uncompressed. */
const maxAtOnce = 64

/** Takes a slot; gives the function that gives it back, to be called once, or undefined when none is free. */
type TakeSlot = (address: string) => (() => void) | undefined

/**
 * Clients that read slowly hold slots for long. A client may hold half of those that others do not hold, as in upstream/send/slots.ts: n
 * such clients get one part in n + 1 each, and one part stays free.
 */
const createCompressionSlots = (): TakeSlot => {
  const byClient = new Map<string, number>()
  let slotsInUse = 0
  const count = (client: string, by: 1 | -1): void => {
    slotsInUse += by
    addCount(byClient, client, by)
  }
  return (address) => {
    const client = addressGroup(address)
    if ((byClient.get(client) ?? 0) >= maxAtOnce - slotsInUse) return undefined
    count(client, 1)
    return () => count(client, -1)
  }
}

/** Longest time that the coder keeps what it has received, however fast more arrives: a page appears while it is made. */
const flushAfterMs = 20

const codedStream = (content: Readable, coding: StreamCoding, done: () => void): Readable => {
  const { stream, flush } = createCoder(coding)
  let timer: NodeJS.Timeout | undefined
  const flushUnsent = (): void => {
    timer = undefined
    if (!stream.destroyed && !stream.writableEnded) flush()
  }
  stream.once('close', () => {
    clearTimeout(timer)
    done()
  })
  // An error on either side ends both; the reader of the coded stream sees it.
  pipeline(content, stream, () => {})
  content.on('data', () => {
    timer ??= setTimeout(flushUnsent, flushAfterMs)
  })
  return stream
}

const lengthOf = ({ content, headers }: GatewayResponse): number => {
  if (Buffer.isBuffer(content)) return content.length
  return Number(headerValue(headers, 'content-length') ?? Number.POSITIVE_INFINITY)
}

const lengthHeader: ReadonlySet<string> = new Set(['content-length'])

/** A 304 has the tag and the Vary of the form that the client has (RFC 9110 §15.4.5): the upstream has the uncoded one only. */
const withHeadersOfForm = (
  response: GatewayResponse,
  requestHeaders: RequestHeaders,
  codings: readonly StreamCoding[],
): GatewayResponse => {
  const list = requestHeader(requestHeaders, 'if-none-match')
  const tag = headerValue(response.headers, 'etag')
  if (list === undefined || tag === undefined) return response
  const listedTags = parseEntityTagList(list)
  if (listedTags === '*' || listedTags.some(({ opaque }) => opaque === tag)) return response
  const form = codings
    .map((coding) => tagOfCoded(tag, coding))
    .find((formTag) => listedTags.some(({ opaque }) => opaque === formTag))
  if (form === undefined) return response
  return { ...response, headers: withVaryByCoding(withHeader(response.headers, 'ETag', form)) }
}

export type CompressResponse = (context: ValidatedContext, response: GatewayResponse) => ResponseOrPromise

/**
 * Compresses uncompressed responses for clients that accept a coding: responses that are not stored, and streams that are being
 * stored. A hit has its coding already. Before preconditions are evaluated, which then see the entity tag that the client sees.
 */
export const createCompression = (options: CompressOptions): CompressResponse => {
  const accepted = memoize((value) => acceptedForms(value, options.codings), 64)
  const takeSlot = createCompressionSlots()

  const inCoding = (
    response: GatewayResponse,
    headers: HeaderLines,
    coding: StreamCoding,
    done: () => void,
  ): ResponseOrPromise => {
    const { status, content } = response
    if (!Buffer.isBuffer(content)) {
      return {
        status,
        headers: codedHeaders(headers, coding),
        content: codedStream(content as Readable, coding, done),
      }
    }
    const uncoded = { status, headers, content }
    return compressed(content, coding)
      .then((shorter) =>
        shorter === undefined
          ? uncoded
          : {
              status,
              headers: [...codedHeaders(headers, coding), 'Content-Length', String(shorter.length)],
              content: shorter,
            },
      )
      .catch(() => uncoded)
      .finally(done)
  }

  const isCompressible = (request: GatewayRequest, response: GatewayResponse): boolean =>
    (response.content !== undefined || isHead(request.method)) &&
    response.status !== 206 &&
    lengthOf(response) >= options.minBytes &&
    !takesUncodedOnly(request.headers) &&
    mayBeCoded(response)

  const forClient = (
    { request, client, record }: ValidatedContext,
    response: GatewayResponse,
  ): ResponseOrPromise => {
    if (record.cache === 'hit') return response
    if (response.status === 304) return withHeadersOfForm(response, request.headers, options.codings)
    if (!isCompressible(request, response)) return response
    const { status, content } = response
    const headers = withVaryByCoding(response.headers)
    const [coding] = accepted(requestHeader(request.headers, 'accept-encoding') ?? '').codings
    if (coding === undefined) return { status, headers, content }
    // The length must be that of GET (RFC 9110 §8.6), which only compressing would show.
    if (isHead(request.method)) return { status, headers: withoutHeaders(headers, lengthHeader), content }
    const done = takeSlot(client.address)
    return done === undefined ? { status, headers, content } : inCoding(response, headers, coding, done)
  }

  return (context, response) => {
    const { service, request } = context
    return request.headers['accept-encoding'] === undefined || !service.responses.compresses
      ? response
      : forClient(context, response)
  }
}
