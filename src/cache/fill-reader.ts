import { Readable } from 'node:stream'

/** What a reader takes its content from. */
type Supply = {
  /** Pushes what the reader has not got yet, as long as it takes more. */
  serve(reader: FillReader): void
  gone(reader: FillReader): void
}

/** One reader's way through a fill. */
export class FillReader extends Readable {
  readonly #supply: Supply
  /** Bytes and chunks that it has got. */
  position = 0
  taken = 0
  /** Has asked for more than there is. */
  waits = false

  constructor(supply: Supply) {
    super({ highWaterMark: 16 * 1024 })
    this.#supply = supply
    // It may fail before anybody listens: who reads it then learns of it.
    this.on('error', () => {})
  }

  override _read(): void {
    this.#supply.serve(this)
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#supply.gone(this)
    callback(error)
  }
}
