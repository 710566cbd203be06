import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'

const ignore = (): void => {}

/**
 * A request over HTTP/2 with what Fastify and the gateway read of one. Those of node:http2 are streams of their own beside the stream
 * of the request, with a dozen listeners, which takes as long as all else that node:http2 does for a small response.
 */
export class Http2Incoming {
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly method: string
  readonly url: string
  /** The same for all requests of a connection. */
  readonly socket: Socket | undefined
  /** Set when the listener has taken it. */
  content: Readable | undefined = undefined

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.stream = stream
    this.headers = headers
    this.method = headers[':method'] ?? ''
    this.url = headers[':path'] ?? ''
    this.socket = stream.session?.socket
    // A stream that breaks off is closed all the same.
    stream.on('error', ignore)
  }

  get httpVersion(): string {
    return '2.0'
  }

  get httpVersionMajor(): number {
    return 2
  }

  get httpVersionMinor(): number {
    return 0
  }

  /** Nothing more of its content is to come. */
  get complete(): boolean {
    return this.stream.readableEnded || this.stream.closed
  }
}

/** A response over HTTP/2; head and content are written to the stream. Its events are those of the stream. */
export class Http2Outgoing {
  readonly stream: ServerHttp2Stream
  /** node:http2 makes both of the stream; the listener says which belong together. */
  req: Http2Incoming | undefined
  statusCode = 200

  constructor(stream: ServerHttp2Stream) {
    this.stream = stream
    this.req = undefined
  }

  get headersSent(): boolean {
    return this.stream.headersSent
  }

  get destroyed(): boolean {
    return this.stream.destroyed
  }

  /** node:http2 ends the stream of a HEAD before its response. */
  get writableEnded(): boolean {
    return this.stream.headersSent && this.stream.writableEnded
  }

  get writableLength(): number {
    return this.stream.writableLength
  }

  on(event: string, then: (...values: unknown[]) => void): this {
    this.stream.on(event, then)
    return this
  }

  once(event: string, then: (...values: unknown[]) => void): this {
    this.stream.once(event, then)
    return this
  }

  /** Fastify removes its own. */
  removeListener(event: string, then: (...values: unknown[]) => void): this {
    this.stream.off(event, then)
    return this
  }

  /** RFC 9110 §15.2.1 */
  writeContinue(): void {
    if (!this.stream.closed) this.stream.additionalHeaders({ ':status': 100 })
  }

  end(content?: string | Buffer): this {
    const { stream } = this
    if (stream.closed) return this
    if (!stream.headersSent) stream.respond({ ':status': this.statusCode })
    if (!stream.writableEnded) stream.end(content)
    return this
  }

  /** Without an error node:http2 would reset the stream with NO_ERROR, and a response that is cut looks complete. */
  destroy(error?: Error): void {
    this.stream.destroy(error ?? (this.writableEnded ? undefined : new Error('the response was cut')))
  }
}
