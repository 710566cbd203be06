import { IncomingMessage, type ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { GatewayError } from '../../errors.ts'
import type { Reservation } from '../../http/bounds/byte-budget.ts'
import { addressGroup } from '../../http/bounds/client-network.ts'
import { createFairTurns, type FairTurns } from '../../http/bounds/fair-turns.ts'
import { OpenList } from '../../http/bounds/open-list.ts'
import { interposePush } from '../../http/interposed-streams.ts'
import type { EdgeEvent } from '../events.ts'
import { BufferedOctets, longestGathered, ownMemory } from './buffered-octets.ts'
import { clientGone, hasContent, isHttp2 } from './read-request.ts'
import type { ReadingTurns } from './reading-turns.ts'
import { continueReading, pauseReading, readAsStream } from './socket-reading.ts'

/** Each piece that is passed on is counted and written by itself. */
const piecesPerTurn = 32

/** Of a content whose reader is slow or has not begun; then its connection is not read. */
const maxBuffered = 64 * 1024

/** Of a content that is not needed any more, so that the next request on the connection can be read. */
const maxDiscarded = 256 * 1024

/** A client that keeps sending gets the response within this time; closed at once, the connection could lose it (RFC 9112 §9.6). */
const lingerMs = 2_000

type Source = {
  /** Emits `data`, `end`, `error`, `close`. */
  readonly stream: Readable
  readonly client: string
  /** The response; node:http2 emits `finish` on its own form of it only when the stream closes. */
  readonly response: { readonly writableFinished: boolean; once(event: 'finish', then: () => void): unknown }
  /** Octets that are read for the sake of the next request, when the response has been sent. */
  readonly maxDiscarded: number
  /** As declared; NaN = not declared. */
  readonly length: number
  /** Asked at `end`: has the client sent the end of the content? */
  isWhole(): boolean
  pause(): void
  proceed(): void
  /** The response has been sent, and the rest of the content is too much. */
  cut(): void
  destroy(): void
}

const http1Source = (stream: IncomingMessage, response: ServerResponse): Source => {
  const socket: Socket = stream.socket
  readAsStream(socket)
  return {
    stream,
    client: addressGroup(socket.remoteAddress ?? ''),
    response,
    maxDiscarded,
    length: Number.NaN,
    isWhole: () => stream.complete,
    pause: () => pauseReading(socket),
    proceed: () => continueReading(socket),
    cut: () => {
      const timer = setTimeout(() => socket.destroy(), lingerMs)
      socket.once('close', () => clearTimeout(timer))
      socket.end()
    },
    destroy: () => void socket.destroy(),
  }
}

/**
 * A stream that is not read still gets what its window allows, and node:http2 would keep an object of 130 octets for each DATA frame:
 * short frames are joined until it is read again. node:http2 also ends a stream that is reset, or whose connection breaks, before it
 * says that the stream is closed: only END_STREAM ends a content (RFC 9113 §8.1).
 */
const watchFrames = (stream: ServerHttp2Stream) => {
  const octets = new BufferedOctets()
  let isBuffered = false
  let isWhole = false
  const push = interposePush(stream, (_, chunk, encoding) => {
    if (isBuffered && Buffer.isBuffer(chunk) && chunk.length <= longestGathered) {
      octets.add(chunk)
      // As for a full buffer: the window stays closed.
      return false
    }
    if (chunk === null && !stream.closed) isWhole = true
    flush()
    return push(chunk, encoding)
  })
  const flush = (): void => {
    for (const piece of octets.takeAll()) push(piece)
  }
  return {
    isWhole: () => isWhole,
    pause: (): void => {
      isBuffered = true
      stream.pause()
    },
    proceed: (): void => {
      isBuffered = false
      flush()
      stream.resume()
    },
  }
}

const http2Source = (stream: ServerHttp2Stream, length: string | undefined): Source => ({
  stream,
  client: addressGroup(stream.session?.socket?.remoteAddress ?? ''),
  response: stream,
  maxDiscarded: 0,
  length: Number(length),
  ...watchFrames(stream),
  // The rest of the body is not needed (RFC 9113 §8.1).
  cut: () => stream.close(constants.NGHTTP2_NO_ERROR),
  // `close` would wait until the buffered data is sent, which a stalled client prevents; an error resets the stream at once.
  destroy: () => void stream.destroy(new Error('the client did not read the response')),
})

export type ContentBounds = {
  /** Longest silence of a client that is to send content; 0 = no bound. */
  readonly requestTimeoutMs: number
  /** A slower client counts as silent; 0 = no bound. */
  readonly minBytesPerSecond: number
  readonly report: (event: EdgeEvent) => void
}

type Shared = ContentBounds & {
  readonly open: OpenList<RequestContent>
  readonly pieces: FairTurns
  readonly reading: ReadingTurns
}

/**
 * The content of a request. It is taken from the connection from its first octet, so that what waits for a reader is in blocks of
 * known size and counted, and not in as many objects of node:http as the client made pieces; and until its last octet, so that a
 * content that nobody needs does not stop its connection.
 */
export class RequestContent extends Readable {
  readonly #source: Source
  readonly #shared: Shared
  readonly #outgoing: ServerResponse
  readonly #buffered = new BufferedOctets()
  #reservation: Reservation | undefined
  #counted = 0
  /** Octets since the last look at the clock. */
  #moved = 0
  #received = 0
  /** Among those that may be silent. */
  index = -1
  #isWanted = false
  #waitsForTurn = false
  #isBlocked = false
  #hasEnded = false
  #isDiscarded = false
  #discarded = 0
  #isCut = false
  #awaitsContinue: boolean
  /** When the client counts as silent, unless it sends more; moved by the time that it is held up. */
  #deadlineMs: number
  #blockedSinceMs = 0

  constructor(source: Source, outgoing: ServerResponse, shared: Shared, awaitsContinue: boolean) {
    // The octets that wait are the held ones.
    super({ highWaterMark: 1 })
    this.#source = source
    this.#shared = shared
    this.#outgoing = outgoing
    this.#awaitsContinue = awaitsContinue
    this.#deadlineMs = performance.now() + shared.requestTimeoutMs
    // It may fail before it has a reader; without a listener the process would end.
    this.on('error', ignore)
    const { stream } = source
    stream.on('data', (chunk: Buffer) => this.#take(chunk))
    stream.once('end', () => this.#end())
    stream.on('error', (error) => this.#breakOff(error))
    stream.once('close', () => this.#close())
    source.response.once('finish', () => this.#discardRest())
    // A whole request goes on without its client. The upstream reads its content, or nobody does.
    outgoing.once('close', () => this.#uncount())
  }

  /** From now on what it holds counts for its client. */
  count(reservation: Reservation): void {
    this.#reservation = reservation
    this.#recount()
    this.#proceedWithRoom()
  }

  /** Ends a content whose client is silent. */
  endIfSilent(nowMs: number): void {
    const { requestTimeoutMs, minBytesPerSecond } = this.#shared
    if (this.#moved > 0) {
      const gainedMs = minBytesPerSecond === 0 ? requestTimeoutMs : (this.#moved * 1000) / minBytesPerSecond
      this.#deadlineMs = Math.min(nowMs + requestTimeoutMs, this.#deadlineMs + gainedMs)
      this.#moved = 0
    }
    if (this.#isBlocked || this.#hasEnded || nowMs < this.#deadlineMs) return
    this.#deadlineMs = Number.POSITIVE_INFINITY
    this.#shared.report({ kind: 'no-request', reason: 'timeout' })
    this.destroy(new GatewayError('request_timeout'))
    this.#cutAfterResponse()
    const timer = setTimeout(() => this.#source.destroy(), lingerMs)
    this.#outgoing.once('close', () => clearTimeout(timer))
  }

  /** RFC 9110 §10.1.1: only a client whose content is read is asked for it. */
  override _read(): void {
    this.#isWanted = true
    if (this.#awaitsContinue) {
      this.#awaitsContinue = false
      if (!this.#outgoing.headersSent) this.#outgoing.writeContinue()
    }
    if (this.#waitsForTurn) return
    this.#passOn()
    this.#proceedWithRoom()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#discard()
    callback(error)
  }

  #take(chunk: Buffer): void {
    this.#moved += chunk.length
    this.#received += chunk.length
    // A client that breaks off behind the last octet has sent a whole request; HTTP/2 marks its end in a frame of its own.
    if (this.#received === this.#source.length) this.#hasEnded = true
    this.#shared.reading.count(this.#source.client)
    if (this.#isDiscarded) {
      this.#drop(chunk.length)
      return
    }
    if (chunk.length > longestGathered && this.#isWanted && this.#buffered.length === 0) {
      this.#isWanted = false
      this.push(ownMemory(chunk))
      return
    }
    this.#buffered.add(chunk)
    if (this.#buffered.cost !== this.#counted) this.#recount()
    if (this.#buffered.length >= maxBuffered || this.#reservation === undefined) this.#block()
    if (this.#waitsForTurn) return
    // Short pieces are passed on when the turn of their client comes, together with what arrives until then.
    if (!this.#shared.pieces.mayBegin()) this.#waitForTurn()
    else if (this.#isWanted) this.#passOn()
  }

  #end(): void {
    if (!this.#hasEnded && !this.#source.isWhole()) {
      this.#close()
      return
    }
    this.#hasEnded = true
    this.#shared.open.remove(this)
    this.#proceed()
    if (this.#isDiscarded || this.#buffered.length > 0) return
    this.push(null)
  }

  #close(): void {
    this.#shared.open.remove(this)
    if (!this.#hasEnded) this.destroy(clientGone())
  }

  #breakOff(error: Error): void {
    if (!this.#hasEnded) this.destroy(error)
  }

  #waitForTurn(): void {
    this.#waitsForTurn = true
    this.#block()
    this.#shared.reading.wait(this.#source.client, () => {
      this.#waitsForTurn = false
      if (this.#isWanted) this.#passOn()
      this.#proceedWithRoom()
    })
  }

  #passOn(): void {
    if (this.#buffered.length > 0) {
      this.#isWanted = false
      const pieces = this.#buffered.takeAll()
      this.#recount()
      for (const piece of pieces) this.push(piece)
    }
    if (this.#hasEnded && this.#buffered.length === 0 && !this.readableEnded) this.push(null)
  }

  /** Counts what waits for the first reader; later a reader counts what it takes, or has an upstream slot. */
  #recount(): void {
    const reservation = this.#reservation
    if (reservation === undefined) return
    const cost = this.readableDidRead ? 0 : this.#buffered.cost
    const more = cost - this.#counted
    if (more > 0 && !reservation.reserve(more)) {
      this.destroy(tooManyBodies())
      return
    }
    if (more < 0) reservation.shrink(-more)
    this.#counted = cost
  }

  #drop(bytes: number): void {
    this.#discarded += bytes
    if (this.#discarded > this.#source.maxDiscarded) this.#cutAfterResponse()
    else if (!this.#waitsForTurn && !this.#shared.pieces.mayBegin()) this.#waitForTurn()
  }

  /** Also of a content that has arrived whole, and that nobody has read. */
  #discardRest(): void {
    this.destroy()
    if (!this.#hasEnded && this.#source.maxDiscarded === 0) this.#cutAfterResponse()
  }

  #uncount(): void {
    this.#reservation?.release()
    this.#reservation = undefined
  }

  #discard(): void {
    if (this.#isDiscarded) return
    this.#isDiscarded = true
    this.#buffered.takeAll()
    this.#uncount()
    if (!this.#waitsForTurn) this.#proceed()
  }

  #cutAfterResponse(): void {
    if (this.#isCut) return
    this.#isCut = true
    const { response } = this.#source
    if (response.writableFinished) {
      this.#source.cut()
      return
    }
    this.#block()
    response.once('finish', () => {
      this.#proceed()
      this.#source.cut()
    })
  }

  #block(): void {
    if (this.#isBlocked || this.#hasEnded) return
    this.#isBlocked = true
    this.#blockedSinceMs = performance.now()
    this.#source.pause()
  }

  #proceedWithRoom(): void {
    if (!this.#waitsForTurn && this.#buffered.length < maxBuffered) this.#proceed()
  }

  #proceed(): void {
    if (!this.#isBlocked) return
    this.#isBlocked = false
    this.#deadlineMs += performance.now() - this.#blockedSinceMs
    this.#source.proceed()
  }
}

/** A request with its content. A WeakMap of both would keep old requests alive, as a Set would: docs/decisions/0013. */
export class Http1Incoming extends IncomingMessage {
  content: RequestContent | Buffer | undefined = undefined
  /** Declared octets of a content that may have come with its head. */
  shortBytes = 0
}

/** The content of a request that the listener has taken, whole if it came with its head; undefined if it has none. */
export const contentOf = (incoming: IncomingMessage): RequestContent | Buffer | undefined =>
  (incoming as Http1Incoming).content

/** Begins a request once it is known whether its content has come with its head. */
export const whenContentIsKnown = (incoming: IncomingMessage, begin: () => void): void => {
  if ((incoming as Http1Incoming).shortBytes > 0) process.nextTick(begin)
  else begin()
}

/** Most JSON is shorter. Such a content is in one piece, since its length is declared. */
const maxShort = 16 * 1024

/** 0 for a content that is none of these: in chunks, over HTTP/2, or asked for with 100 (Continue). */
const shortBytesOf = ({ headers, httpVersionMajor }: IncomingMessage, awaitsContinue: boolean): number => {
  const bytes = Number(headers['content-length'] ?? 0)
  const isOther = httpVersionMajor !== 1 || awaitsContinue || headers['transfer-encoding'] !== undefined
  return isOther || bytes > maxShort ? 0 : bytes
}

/** Creates the function to call for each request before anything reads it. */
export const createRequestContents = (bounds: ContentBounds, reading: ReadingTurns) => {
  const open = new OpenList<RequestContent>()
  const shared: Shared = { ...bounds, open, pieces: createFairTurns(piecesPerTurn), reading }
  const { requestTimeoutMs } = bounds
  const endSilent = (): void => {
    const nowMs = performance.now()
    for (const content of [...open.all]) content.endIfSilent(nowMs)
  }
  const timer =
    requestTimeoutMs === 0
      ? undefined
      : setInterval(endSilent, Math.max(20, Math.min(1_000, requestTimeoutMs / 10))).unref()
  const sourceOf = (incoming: IncomingMessage, outgoing: ServerResponse): Source | undefined => {
    if (!isHttp2(incoming)) return hasContent(incoming.headers) ? http1Source(incoming, outgoing) : undefined
    // RFC 9113 §8.1: frames mark the end of content; it needs no length.
    const { stream } = incoming as unknown as Http2ServerRequest
    return stream.endAfterHeaders ? undefined : http2Source(stream, incoming.headers['content-length'])
  }
  const takeStream = (request: Http1Incoming, outgoing: ServerResponse, awaitsContinue: boolean): void => {
    const source = sourceOf(request, outgoing)
    if (source === undefined) return
    const content = new RequestContent(source, outgoing, shared, awaitsContinue)
    request.content = content
    open.add(content)
  }
  const takeShort = (request: Http1Incoming, outgoing: ServerResponse): void => {
    const { shortBytes } = request
    request.shortBytes = 0
    if (request.readableLength < shortBytes) takeStream(request, outgoing, false)
    else {
      request.content = ownMemory(request.read() as Buffer)
      request.resume()
    }
  }
  return {
    take: (incoming: IncomingMessage, outgoing: ServerResponse, awaitsContinue: boolean): void => {
      const request = incoming as Http1Incoming
      // What waits behind another response is counted from its first octet.
      const shortBytes = outgoing.socket === null ? 0 : shortBytesOf(incoming, awaitsContinue)
      if (shortBytes === 0) {
        takeStream(request, outgoing, awaitsContinue)
        return
      }
      request.shortBytes = shortBytes
      process.nextTick(takeShort, request, outgoing)
    },
    close: (): void => clearInterval(timer),
  }
}

const ignore = (): void => {}

const tooManyBodies = (): GatewayError =>
  new GatewayError('overloaded', {
    detail: 'Too many request bodies are in flight.',
    retryAfterSeconds: 1,
  })
