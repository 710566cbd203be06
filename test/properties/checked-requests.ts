import { Agent, type IncomingMessage, request } from 'node:http'

/** A response, or `status` 0 for none. `by` is the instance that was asked. */
export type Reply = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
  readonly by: string
}

export type CheckedRequest = {
  readonly method: string
  readonly to: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly content?: string
  readonly hangUpAfterMs?: number
}

/** Makes the function that sends the requests of a checker. */
export const createCheckedRequests = (connections: number, lostAfterMs: number) => {
  /**
   * An agent with a timeout also obeys the one that the gateway announces (`Keep-Alive`) and closes an idle connection first.
   * Without it a request may be sent while the gateway closes (RFC 9112 §9.3.1), minutes into a long run.
   */
  const agent = new Agent({ keepAlive: true, maxSockets: connections, timeout: 60_000 })
  const send = ({ method, to, path, headers, content, hangUpAfterMs }: CheckedRequest): Promise<Reply> =>
    new Promise((resolve) => {
      // A process that was killed answers nothing: no claim.
      const lost = (): void => resolve({ status: 0, headers: {}, text: '', by: to })
      const url = `${to}/index.php/site-json/site/v2${path}`
      const sent = request(url, { method, agent, headers: headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', lost)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, by: to })
        })
      })
      sent.on('error', lost)
      sent.setTimeout(lostAfterMs, () => sent.destroy())
      sent.end(content)
      if (hangUpAfterMs !== undefined) setTimeout(() => sent.destroy(), hangUpAfterMs)
    })
  return { send, close: () => agent.destroy() }
}
