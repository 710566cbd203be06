/** A message of HTTP/1.1 as its reader sees it grow. */
export type Message = {
  readonly startLine: string
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>
  content: string
  isWhole: boolean
}

const parseHead = (text: string): Message => {
  const [startLine = '', ...lines] = text.split('\r\n')
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    }),
  )
  return { startLine, headers, content: '', isWhole: false }
}

/** Reads messages that follow one another; what it cannot read throws. */
export class MessageReader {
  readonly #begun: (message: Message) => void
  readonly #ended: (message: Message) => void
  /** Has the message content, as far as its reader knows without the head? */
  readonly #hasContent: (message: Message) => boolean
  #bytes = ''
  #message: Message | undefined
  /** Octets of content or of a chunk that are still to come; of a message in chunks undefined before the next size. */
  #left: number | undefined
  #isChunked = false
  #inTrailers = false

  constructor(options: {
    readonly begun?: (message: Message) => void
    readonly ended: (message: Message) => void
    readonly hasContent?: (message: Message) => boolean
  }) {
    this.#begun = options.begun ?? (() => {})
    this.#ended = options.ended
    this.#hasContent = options.hasContent ?? (() => true)
  }

  /** The message that has begun and is not whole. */
  get partial(): Message | undefined {
    return this.#message
  }

  read(bytes: Buffer): void {
    this.#bytes += bytes.toString('latin1')
    while (this.#step());
  }

  #step(): boolean {
    if (this.#message === undefined) return this.#readHead()
    return this.#isChunked ? this.#readChunk(this.#message) : this.#readLength(this.#message)
  }

  #readHead(): boolean {
    const end = this.#bytes.indexOf('\r\n\r\n')
    if (end < 0) return false
    const message = parseHead(this.#bytes.slice(0, end))
    this.#bytes = this.#bytes.slice(end + 4)
    this.#message = message
    const hasContent = this.#hasContent(message)
    this.#isChunked = hasContent && message.headers.get('transfer-encoding') === 'chunked'
    this.#inTrailers = false
    this.#left = this.#isChunked
      ? undefined
      : hasContent
        ? Number(message.headers.get('content-length') ?? 0)
        : 0
    this.#begun(message)
    return true
  }

  #readLength(message: Message): boolean {
    const left = this.#left ?? 0
    const piece = this.#bytes.slice(0, left)
    message.content += piece
    this.#bytes = this.#bytes.slice(piece.length)
    this.#left = left - piece.length
    if (this.#left > 0) return false
    this.#end(message)
    return true
  }

  #readChunk(message: Message): boolean {
    if (this.#left === undefined) return this.#readChunkLine(message)
    const piece = this.#bytes.slice(0, this.#left)
    if (this.#bytes.length < this.#left + 2) return false
    message.content += piece
    this.#bytes = this.#bytes.slice(this.#left + 2)
    this.#left = undefined
    return true
  }

  #readChunkLine(message: Message): boolean {
    const end = this.#bytes.indexOf('\r\n')
    if (end < 0) return false
    const line = this.#bytes.slice(0, end)
    this.#bytes = this.#bytes.slice(end + 2)
    if (this.#inTrailers) {
      if (line === '') this.#end(message)
      return true
    }
    const size = /^([\da-f]+)(?:;|$)/i.exec(line)?.[1]
    if (size === undefined) throw new Error(`no size of a chunk: ${JSON.stringify(line.slice(0, 80))}`)
    if (Number.parseInt(size, 16) === 0) this.#inTrailers = true
    else this.#left = Number.parseInt(size, 16)
    return true
  }

  #end(message: Message): void {
    message.isWhole = true
    this.#message = undefined
    this.#ended(message)
  }
}
