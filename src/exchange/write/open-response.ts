import { type Readable, Transform, type TransformCallback } from 'node:stream'

/** What happens between the head of the response to a write and its end. */
export type ResponseSteps = {
  /** Awaited before the client gets a piece of it. */
  beforePiece(): Promise<unknown> | undefined
  /** Awaited before the client gets the end. */
  ended(): Promise<unknown> | undefined
  /** It breaks off, at either side. */
  brokenOff(): void
}

/**
 * The response to a write on its way to the client. A declared length ends it with its last octet, at which the client sees the end;
 * a shorter response is broken off.
 */
export class OpenResponse extends Transform {
  readonly #steps: ResponseSteps
  readonly #declared: number | undefined
  #bytes = 0
  #isOver = false

  constructor(content: Readable, declared: number | undefined, steps: ResponseSteps) {
    super()
    this.#steps = steps
    this.#declared = declared
    // Before the stream is taken down: whoever sees the end of a broken response finds nothing older stored.
    content.once('error', () => this.#breakOff())
  }

  override _transform(piece: Buffer, _encoding: BufferEncoding, next: TransformCallback): void {
    this.#bytes += piece.length
    const before = this.#before()
    if (before === undefined) next(null, piece)
    else before.then(() => next(null, piece), next)
  }

  override _flush(next: TransformCallback): void {
    if (this.#declared !== undefined && this.#bytes !== this.#declared) this.#breakOff()
    const before = this.#end()
    if (before === undefined) next()
    else before.then(() => next(), next)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#breakOff()
    done(error)
  }

  /** Of the piece that has just come; nothing more is dropped once it is over. */
  #before(): Promise<unknown> | undefined {
    if (this.#bytes === this.#declared) return this.#end()
    return this.#isOver ? undefined : this.#steps.beforePiece()
  }

  #end(): Promise<unknown> | undefined {
    if (this.#isOver) return undefined
    this.#isOver = true
    return this.#steps.ended()
  }

  #breakOff(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#steps.brokenOff()
  }
}
