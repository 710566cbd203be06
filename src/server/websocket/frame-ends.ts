/** The longest head of a frame: two octets, a length of eight, a mask of four (RFC 6455 §5.2). */
const longestHead = 14

const lengthOctets = (second: number): number => {
  const length = second & 0x7f
  return length === 127 ? 8 : length === 126 ? 2 : 0
}

const headLength = (second: number): number => 2 + lengthOctets(second) + (second >= 0x80 ? 4 : 0)

const payloadLength = (head: Buffer): number => {
  const short = (head[1] as number) & 0x7f
  if (short < 126) return short
  return short === 126 ? head.readUInt16BE(2) : head.readUInt32BE(2) * 2 ** 32 + head.readUInt32BE(6)
}

/** Finds where frames end in the octets of one direction of a WebSocket, without holding any of them but the head of a frame. */
export class FrameEnds {
  readonly #head = Buffer.alloc(longestHead)
  #headBytes = 0
  /** Octets of the payload that are still to come. */
  #left = 0

  /** Has every frame that has begun ended? */
  get isBetween(): boolean {
    return this.#left === 0 && this.#headBytes === 0
  }

  /** Index behind the last frame that ends in the chunk; -1 when none does. */
  read(chunk: Buffer): number {
    let at = 0
    let end = -1
    while (at < chunk.length) {
      at = this.#left > 0 ? this.#skip(chunk, at) : this.#readHead(chunk, at)
      if (this.isBetween) end = at
    }
    return end
  }

  #skip(chunk: Buffer, at: number): number {
    const skipped = Math.min(this.#left, chunk.length - at)
    this.#left -= skipped
    return at + skipped
  }

  #readHead(chunk: Buffer, from: number): number {
    let at = from
    const wanted = (): number => (this.#headBytes < 2 ? 2 : headLength(this.#head[1] as number))
    while (at < chunk.length && this.#headBytes < wanted()) {
      this.#head[this.#headBytes] = chunk[at] as number
      this.#headBytes += 1
      at += 1
    }
    if (this.#headBytes === wanted() && this.#headBytes >= 2) {
      this.#left = payloadLength(this.#head)
      this.#headBytes = 0
    }
    return at
  }
}
