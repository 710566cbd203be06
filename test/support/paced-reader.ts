import { get, type IncomingMessage } from 'node:http'
import { pause } from './origin.ts'

/** A client that reads when the test says so, and counts the bytes. */
export type PacedReader = {
  /** Resolves with the head. */
  readonly head: Promise<IncomingMessage>
  /** Bytes read so far. */
  readonly bytes: () => number
  /** Resolves when this number of bytes has arrived; rejects after a minute. */
  until(bytes: number): Promise<void>
  /** The whole content, or `broken` when the connection ended before it did. */
  readonly end: Promise<Buffer | 'broken'>
  pause(): void
  resume(): void
  leave(): void
}

/** Begins to read at once. */
export const startReader = (url: string, headers: Record<string, string> = {}): PacedReader => {
  const chunks: Buffer[] = []
  let count = 0
  let message: IncomingMessage | undefined
  const request = get(url, { agent: false, headers: headers })
  const head = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve)
    request.once('error', reject)
  })
  head.catch(() => {})
  const end = new Promise<Buffer | 'broken'>((resolve) => {
    request.once('error', () => resolve('broken'))
    request.once('response', (response: IncomingMessage) => {
      message = response
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        count += chunk.length
      })
      response.once('error', () => resolve('broken'))
      response.once('close', () => resolve(response.complete ? Buffer.concat(chunks) : 'broken'))
    })
  })
  return {
    head,
    end,
    bytes: () => count,
    until: async (bytes) => {
      const latest = performance.now() + 60_000
      while (count < bytes) {
        if (performance.now() > latest) throw new Error(`${count} of ${bytes} bytes after a minute`)
        await pause(5)
      }
    },
    pause: () => message?.pause(),
    resume: () => message?.resume(),
    leave: () => request.destroy(),
  }
}
