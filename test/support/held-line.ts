import { once } from 'node:events'
import { connect } from 'node:net'
import { readResponses } from './read-messages.ts'

/** One answer on a line; `status` 0: the line ended before it was whole. */
export type LineAnswer = { readonly status: number; readonly text: string; field(name: string): string }

/** A connection that is kept, on which bytes are sent when the test wants it. */
export type HeldLine = {
  /** Of this end. */
  readonly port: number
  send(bytes: string): void
  /** The next answer that comes, or has come. */
  next(): Promise<LineAnswer>
  ask(bytes: string): Promise<LineAnswer>
  close(): void
}

const patienceMs = 10_000

/** Opens a line to an http:// address. */
export const openLine = async (address: string): Promise<HeldLine> => {
  const { hostname, port } = new URL(address)
  const socket = connect(Number(port), hostname)
  let bytes = Buffer.alloc(0)
  let wake = (): void => undefined
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    wake()
  })
  socket.on('error', () => undefined)
  socket.on('close', () => wake())
  socket.setTimeout(patienceMs, () => socket.destroy())
  await once(socket, 'connect')
  const take = (): LineAnswer | undefined => {
    const { messages, rest } = readResponses(bytes)
    const [first] = messages
    if (first === undefined) return undefined
    if (messages.length > 1) throw new Error('more answers than questions')
    bytes = Buffer.from(rest)
    return {
      status: Number(first.startLine.split(' ', 2)[1]),
      text: first.content.toString(),
      field: (name) => first.fields.find(([one]) => one.toLowerCase() === name)?.[1] ?? '',
    }
  }
  const next = async (): Promise<LineAnswer> => {
    for (;;) {
      const answer = take()
      if (answer !== undefined) return answer
      if (socket.destroyed) return { status: 0, text: '', field: () => '' }
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  const send = (text: string): void => {
    socket.write(text)
  }
  return {
    port: socket.localPort ?? 0,
    send,
    next,
    ask: (text) => {
      send(text)
      return next()
    },
    close: () => socket.destroy(),
  }
}
