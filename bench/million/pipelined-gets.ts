import { once } from 'node:events'
import { connect } from 'node:net'

export type PipelinedGets = {
  readonly origin: string
  /** Targets in the order in which they are asked for. */
  readonly targetOf: (turn: number) => string
  /** JSON, sent by POST. */
  readonly contentOf?: (turn: number) => string
  readonly count: number
  readonly connections: number
  /** Requests in flight on each connection; 1: none is pipelined. */
  readonly depth?: number
}

/** In no content of the bench. */
const mark = Buffer.from('HTTP/1.1 ')
const good = Buffer.from('HTTP/1.1 200')

const requestText = ({ targetOf, contentOf }: PipelinedGets, turn: number): string => {
  const target = targetOf(turn)
  if (contentOf === undefined) return `GET ${target} HTTP/1.1\r\nHost: bench\r\n\r\n`
  const content = contentOf(turn)
  return `POST ${target} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`
}

/** Sends GETs on some connections, several at a time on each; returns how many were answered with 200. */
export const pipelinedGets = async (gets: PipelinedGets): Promise<number> => {
  const { origin, count, connections, depth = 16 } = gets
  const { hostname, port } = new URL(origin)
  let sent = 0
  let successes = 0
  const line = async (): Promise<void> => {
    const socket = connect(Number(port), hostname).setNoDelay(true)
    await once(socket, 'connect')
    let waiting = 0
    let rest: Buffer = Buffer.alloc(0)
    const ask = (): void => {
      let text = ''
      for (; waiting < depth && sent < count; waiting += 1, sent += 1) {
        text += requestText(gets, sent)
      }
      if (text !== '') socket.write(text)
      else if (waiting === 0) socket.end()
    }
    socket.on('data', (chunk) => {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let from = 0
      for (let at = bytes.indexOf(mark); at !== -1 && at + good.length <= bytes.length; ) {
        waiting -= 1
        if (bytes.subarray(at, at + good.length).equals(good)) successes += 1
        from = at + good.length
        at = bytes.indexOf(mark, from)
      }
      // What may be the beginning of a response.
      rest = bytes.subarray(Math.max(from, bytes.length - good.length + 1))
      if (waiting <= depth / 2) ask()
    })
    ask()
    await once(socket, 'close')
    if (waiting > 0) throw new Error(`the gateway closed before ${waiting} answers`)
  }
  await Promise.all(Array.from({ length: connections }, line))
  return successes
}
