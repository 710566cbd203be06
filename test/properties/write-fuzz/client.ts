import { Agent, request as requestHttp1 } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import type { Duplex } from 'node:stream'

/** One request on its way. */
export type Sending = {
  write(piece: string): void
  end(): void
  /** Leaves: a reset of the connection or of the stream. */
  leave(): void
}

export type Heard = {
  head?(status: number, cacheStatus: string): void
  piece?(text: string): void
  /** `isWhole`: its response ended as it should. */
  over(isWhole: boolean): void
}

type Head = { readonly method: string; readonly path: string; readonly headers?: Record<string, string> }

export type Client = {
  send(head: Head, heard: Heard): Sending
  close(): void
}

/** Called once. */
const once = (over: Heard['over']): Heard['over'] => {
  let isOver = false
  return (isWhole) => {
    if (isOver) return
    isOver = true
    over(isWhole)
  }
}

export const http1Client = (origin: () => string): Client => {
  const agent = new Agent({ keepAlive: true })
  return {
    send: ({ method, path, headers }, heard) => {
      const over = once(heard.over)
      const request = requestHttp1(origin() + path, { method, agent, headers: headers ?? {} }, (response) => {
        heard.head?.(response.statusCode ?? 0, String(response.headers['cache-status'] ?? ''))
        response.on('data', (piece: Buffer) => heard.piece?.(piece.toString()))
        response.on('end', () => over(response.complete))
        response.on('error', () => over(false))
        response.on('close', () => over(false))
      })
      request.on('error', () => over(false))
      return {
        write: (piece) => void request.write(piece),
        end: () => void request.end(),
        leave: () => void request.destroy(),
      }
    },
    close: () => agent.destroy(),
  }
}

export const http2Client = (origin: () => string): Client => {
  let session: ClientHttp2Session | undefined
  const sessionNow = (): ClientHttp2Session => {
    if (session === undefined || session.destroyed || session.closed) {
      session = connectHttp2(origin(), { rejectUnauthorized: false })
      session.on('error', () => {})
    }
    return session
  }
  return {
    send: ({ method, path, headers }, heard) => {
      const over = once(heard.over)
      const stream: Duplex & { close(code: number): void; readonly rstCode: number | undefined } =
        sessionNow().request(
          { ':method': method, ':path': path, ...headers },
          { endStream: method === 'GET' },
        )
      let hasEnded = false
      stream.on('response', (fields: Record<string, unknown>) =>
        heard.head?.(Number(fields[':status']), String(fields['cache-status'] ?? '')),
      )
      stream.on('data', (piece: Buffer) => heard.piece?.(piece.toString()))
      stream.on('end', () => {
        hasEnded = true
      })
      stream.on('error', () => over(false))
      stream.on('close', () => over(hasEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR))
      return {
        write: (piece) => void stream.write(piece),
        end: () => void (method === 'GET' || stream.end()),
        leave: () => stream.close(constants.NGHTTP2_CANCEL),
      }
    },
    close: () => session?.destroy(),
  }
}
