import type { Socket } from 'node:net'
import { createFrameReader, type Frame } from './frames.ts'

/** A connection either sends commands or subscribes to channels. */
export type Purpose = 'calls' | 'listens'

export type GuardOptions = {
  readonly purpose: Purpose
  /** Longest reply. */
  readonly mostBytes: number
  /** Longest wait for the reply to a command. */
  readonly lateMs: number
}

/** Enough for a reply that lists every slot of a cluster with its nodes. */
const mostElements = 524_288

const redirectPattern = /^(?:MOVED|ASK) \d{1,5} \S*:\d{1,5}$/

/** ioredis reads the first two elements of a message, and of the reply to SUBSCRIBE, as texts. */
const faultToListener = ({ kind, length, leadingTexts }: Frame): string | undefined => {
  const isText = (kind === 'text' && length >= 2) || leadingTexts >= 2
  return isText || kind === 'error' ? undefined : 'not a message of a channel'
}

const faultOf = (frame: Frame, purpose: Purpose): string | undefined => {
  const { kind, said } = frame
  if (kind === 'error' && /^(?:MOVED|ASK)(?: |$)/.test(said) && !redirectPattern.test(said)) {
    return 'an invalid redirection'
  }
  if (purpose === 'listens') return faultToListener(frame)
  return kind === 'push' ? 'a message on a connection without subscription' : undefined
}

/** Counts commands and their answers. */
const createOutstanding = (lateMs: number) => {
  let sent = 0
  let answered = 0
  let mark = { sent: 0, at: performance.now() }
  return {
    sent: (): undefined => {
      sent += 1
    },
    answered: (): string | undefined => {
      answered += 1
      return answered > sent ? 'a reply without a command' : undefined
    },
    /** Replies that are all late would let the number of remembered commands grow. */
    fault: (): string | undefined => {
      const now = performance.now()
      if (answered >= mark.sent) mark = { sent, at: now }
      return now - mark.at > lateMs ? 'replies that are too late' : undefined
    },
  }
}

/**
 * Checks replies before ioredis, which trusts the server: a misplaced null, an unexpected reply or a redirection without an
 * address ends the process, and the announced length of a list is allocated at once. An invalid reply ends the connection
 * instead.
 */
export const guardReplies = (stream: Socket, { purpose, mostBytes, lateMs }: GuardOptions): void => {
  const outstanding = createOutstanding(lateMs)
  const commands = createFrameReader({ bytes: Infinity, elements: Infinity }, outstanding.sent)
  const replies = createFrameReader(
    { bytes: mostBytes, elements: mostElements },
    (frame) => faultOf(frame, purpose) ?? (purpose === 'calls' ? outstanding.answered() : undefined),
  )
  const { push, write } = stream
  stream.write = ((data: Buffer | string, ...rest: []) => {
    const bytes = typeof data === 'string' ? Buffer.from(data) : data
    if (purpose === 'calls') commands.read(bytes)
    return write.call(stream, bytes, ...rest)
  }) as typeof write
  stream.push = (chunk, encoding) => {
    if (chunk !== null) {
      const fault = replies.read(chunk) ?? (purpose === 'calls' ? outstanding.fault() : undefined)
      if (fault !== undefined) {
        stream.destroy(new Error(`MALFORMED ${fault}`))
        return false
      }
    }
    return push.call(stream, chunk, encoding)
  }
}
