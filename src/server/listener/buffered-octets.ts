import { overheadOfChunk } from '../../http/bounds/byte-budget.ts'

/** Longer pieces cost their client as much as the gateway. */
export const longestGathered = 4_096

/** A slice keeps the whole block that it was read into. */
export const ownMemory = (chunk: Buffer): Buffer => {
  if (chunk.length * 2 >= chunk.buffer.byteLength) return chunk
  const copy = Buffer.allocUnsafeSlow(chunk.length)
  chunk.copy(copy)
  return copy
}

/** Octets that wait for their reader: short pieces joined, since a client decides how many pieces it makes of a content. */
export class BufferedOctets {
  #pieces: Buffer[] = []
  #block: Buffer | undefined
  #inBlock = 0
  /** Octets. */
  length = 0
  /** The memory that they take. */
  cost = 0

  add(chunk: Buffer): void {
    this.length += chunk.length
    if (chunk.length > longestGathered) {
      this.#endBlock()
      this.#keep(ownMemory(chunk))
      return
    }
    const block = this.#blockFor(chunk.length)
    this.#inBlock += chunk.copy(block, this.#inBlock)
  }

  takeAll(): readonly Buffer[] {
    this.#endBlock()
    const pieces = this.#pieces
    this.#pieces = []
    this.length = 0
    this.cost = 0
    return pieces
  }

  #keep(piece: Buffer): void {
    this.#pieces.push(piece)
    this.cost += piece.length + overheadOfChunk
  }

  #endBlock(): void {
    if (this.#block === undefined) return
    this.cost -= this.#block.length
    this.#keep(ownMemory(this.#block.subarray(0, this.#inBlock)))
    this.#block = undefined
    this.#inBlock = 0
  }

  /** Twice as long each time that it is full, so that a short content has a short one. */
  #blockFor(more: number): Buffer {
    const before = this.#block
    if (before !== undefined && this.#inBlock + more <= before.length) return before
    const block = Buffer.allocUnsafeSlow(Math.max(512, 2 * (this.#inBlock + more)))
    before?.copy(block, 0, 0, this.#inBlock)
    this.cost += block.length - (before?.length ?? 0)
    this.#block = block
    return block
  }
}
