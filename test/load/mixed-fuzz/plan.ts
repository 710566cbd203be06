import { oneOf, type Random, randomFrom } from '../../support/random.ts'

// What happens in one exchange. Both sides make the same plan of its number.

/** How bytes are cut before they are written. */
const cuts = ['whole', 'whole', 'whole', 'random', 'octets'] as const
type Cut = (typeof cuts)[number]

/** Faults of the upstream. Behind `extra` come octets that nobody has asked for, which look like a response. */
const faults = ['reset first', 'close first', 'garbage', 'short', 'reset in the middle', 'extra'] as const
export type Fault = (typeof faults)[number]

export type Plan = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT'
  /** Of the request. */
  readonly sent: {
    readonly length: number
    readonly isChunked: boolean
    readonly extensions: boolean
    readonly cut: Cut
  }
  readonly status: number
  readonly length: number
  readonly framing: 'length' | 'chunks' | 'close' | 'old'
  readonly interim: readonly number[]
  readonly extensions: boolean
  readonly trailers: boolean
  readonly cut: Cut
  readonly fault: Fault | undefined
  /** The response begins before the content of the request is read. */
  readonly isEarly: boolean
  readonly closesAfter: boolean
}

const lengthOf = (random: Random): number => {
  const kind = random()
  if (kind < 0.1) return 0
  if (kind < 0.7) return Math.floor(random() * 400)
  return Math.floor(random() * (kind < 0.98 ? 8_000 : 200_000))
}

const cutOf = (random: Random, length: number): Cut => {
  const cut = oneOf(random, cuts)
  return cut === 'octets' && length > 1_000 ? 'random' : cut
}

export const planOf = (seed: number, number: number, isRead: boolean): Plan => {
  const random = randomFrom(seed * 7_919 + number * 31 + (isRead ? 1 : 0))
  // The first values of neighbours are alike.
  random()
  random()
  const method = isRead
    ? oneOf(random, ['GET', 'GET', 'GET', 'HEAD'] as const)
    : oneOf(random, ['POST', 'PUT'] as const)
  const sentLength = isRead ? 0 : lengthOf(random)
  const status = oneOf(random, [200, 200, 200, 200, 200, 200, 404, 204])
  const length = status === 204 ? 0 : lengthOf(random)
  const fault = random() < 0.12 ? oneOf(random, faults) : undefined
  const isCutShort = fault === 'short' || fault === 'reset in the middle'
  const hasEnd = isCutShort || fault === 'extra'
  const framing = hasEnd
    ? oneOf(random, ['length', 'chunks'] as const)
    : oneOf(random, ['length', 'length', 'chunks', 'chunks', 'close', 'old'] as const)
  return {
    method,
    sent: {
      length: sentLength,
      isChunked: random() < 0.5,
      extensions: random() < 0.3,
      cut: cutOf(random, sentLength),
    },
    status: isCutShort ? 200 : status,
    length: isCutShort ? 100 + length : length,
    framing: status === 204 && !isCutShort ? 'length' : framing,
    interim:
      random() < 0.15
        ? Array.from({ length: 1 + Math.floor(random() * 3) }, () => oneOf(random, [100, 102, 103]))
        : [],
    extensions: random() < 0.3,
    trailers: random() < 0.3,
    cut: cutOf(random, length),
    fault,
    isEarly: random() < 0.1,
    closesAfter: random() < 0.1,
  }
}

/** Of either side; what belongs to another exchange differs. */
export const contentOf = (number: number, length: number, side: 'request' | 'response'): string => {
  const unit = `${side} ${number}; `
  return unit.repeat(Math.ceil(length / unit.length)).slice(0, length)
}

export const inChunks = (
  random: Random,
  content: string,
  { extensions, trailers }: { readonly extensions: boolean; readonly trailers: boolean },
): string => {
  const extension = extensions ? ';name="a;b";other' : ''
  let text = ''
  for (let at = 0; at < content.length; ) {
    const size = Math.min(content.length - at, 1 + Math.floor(random() ** 3 * 4_000))
    text += `${size.toString(16)}${extension}\r\n${content.slice(at, at + size)}\r\n`
    at += size
  }
  return `${text}0${extension}\r\n${trailers ? 'X-Trailer: a\r\n' : ''}\r\n`
}

/** Writes bytes in pieces, each in its own turn of the event loop. */
export const writeCut = async (
  write: (bytes: Buffer) => void,
  bytes: Buffer,
  cut: Cut,
  random: Random,
): Promise<void> => {
  if (cut === 'whole') {
    write(bytes)
    return
  }
  for (let at = 0; at < bytes.length; ) {
    const size = cut === 'octets' ? 1 : 1 + Math.floor(random() ** 2 * bytes.length)
    write(bytes.subarray(at, at + size))
    at += size
    await new Promise((resolve) => setImmediate(resolve))
  }
}
