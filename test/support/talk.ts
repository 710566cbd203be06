import { connect } from 'node:net'
import { readResponses, type WireMessage } from './read-messages.ts'

/** What came back for some bytes. */
export type Talk = {
  readonly answers: readonly WireMessage[]
  /** Status codes in order, and `.` where the server closed: `200 400.`, `.`; '' when it is still waiting. */
  readonly summary: string
  /** Bytes that are no response. */
  readonly stray: string
  /** All received bytes. */
  readonly bytes: Buffer
}

export type TalkOptions = {
  /** Is over at once when that much has come, and not before, however long a busy machine takes over it; '' = at silence. */
  readonly enough: string
  readonly silenceMs: number
}

const maxMs = 10_000
/** For what may stand behind enough. */
const strayMs = 20

const statusOf = ({ startLine }: WireMessage): string => startLine.slice(9, 12)

/** Sends bytes as they are on their own connection; is over when the server closes, has said enough, or is silent. */
export const talk = (address: string, bytes: Buffer, { enough, silenceMs }: TalkOptions): Promise<Talk> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(address)
    const socket = connect({ port: Number(port), host: hostname, noDelay: true })
    const chunks: Buffer[] = []
    let closed = false
    let timer: NodeJS.Timeout

    const read = (): Talk => {
      const bytes = Buffer.concat(chunks)
      const { messages, rest, fault } = readResponses(bytes)
      const summary = messages.map(statusOf).join(' ') + (closed ? '.' : '')
      return {
        answers: messages,
        summary,
        stray: fault === undefined && rest.length === 0 ? '' : `${fault}: ${rest}`,
        bytes,
      }
    }
    const over = (): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(read())
    }
    const wait = (ms: number): void => {
      clearTimeout(timer)
      timer = setTimeout(() => overIfSilent(ms, 5), ms)
    }
    // In a busy process timers run before what has arrived is read: a few turns of the event loop show whether it is silence.
    const overIfSilent = (ms: number, turns: number): void => {
      const { length } = chunks
      setImmediate(() => {
        if (closed) return
        if (chunks.length !== length) wait(ms)
        else if (turns === 0) over()
        else overIfSilent(ms, turns - 1)
      })
    }
    const timeoutMs = (): number => {
      if (enough === '') return silenceMs
      return read().summary === enough ? strayMs : maxMs
    }
    wait(maxMs)
    socket.on('connect', () => {
      socket.write(bytes)
      wait(timeoutMs())
    })
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      wait(timeoutMs())
    })
    socket.on('error', () => {})
    // A server that closes with unread bytes resets; both end here.
    socket.on('close', () => {
      closed = true
      over()
    })
  })
