import { once } from 'node:events'
import { connect } from 'node:net'
import { readResponses } from './read-messages.ts'

/** One response on a line; `status` 0: the line ended before it was whole. */
export type LineResponse = { readonly status: number; readonly text: string; header(name: string): string }

/** A connection that is kept, on which bytes are sent when the test wants it. */
export type HeldLine = {
  /** Of this end. */
  readonly port: number
  send(bytes: string): void
  /** The next response that comes, or has come. */
  next(): Promise<LineResponse>
  ask(bytes: string): Promise<LineResponse>
  close(): void
}

const timeoutMs = 10_000

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
  socket.setTimeout(timeoutMs, () => socket.destroy())
  await once(socket, 'connect')
  const take = (): LineResponse | undefined => {
    const { messages, rest } = readResponses(bytes)
    const [first] = messages
    if (first === undefined) return undefined
    if (messages.length > 1) throw new Error('more answers than questions')
    bytes = Buffer.from(rest)
    return {
      status: Number(first.startLine.split(' ', 2)[1]),
      text: first.content.toString(),
      header: (name) => first.headers.find(([one]) => one.toLowerCase() === name)?.[1] ?? '',
    }
  }
  const next = async (): Promise<LineResponse> => {
    for (;;) {
      const response = take()
      if (response !== undefined) return response
      if (socket.destroyed) return { status: 0, text: '', header: () => '' }
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
