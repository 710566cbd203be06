import { type IncomingMessage, type ServerResponse, request as sendRequest } from 'node:http'
import { startHttpServer } from '../../support/http-server.ts'

/** Request field that says which case a request belongs to; the gateway sends it on like any other. */
export const caseHeader = 'x-case'

/** What the upstream was asked for a case. */
export type Passage = { readonly method: string; readonly target: string }

/** Stands between gateway and WordPress and sees what gets through. */
export type Relay = {
  readonly origin: string
  /** What went through for a case, in order. */
  passages(name: string): readonly Passage[]
  /** Every Link field that the upstream has answered with. */
  readonly links: ReadonlySet<string>
  close(): Promise<void>
}

/**
 * Starts a relay to `origin` on a free port. With `restoresHost` it puts the host that the client asked for back into Host, as the
 * server in front of a WordPress must behind any proxy: front pages redirect to themselves otherwise.
 */
export async function startRelay(origin: string, options = { restoresHost: false }): Promise<Relay> {
  const { hostname, port } = new URL(origin)
  const seen = new Map<string, Passage[]>()
  const links = new Set<string>()
  const pass = (request: IncomingMessage, response: ServerResponse): void => {
    const { method = '', url = '' } = request
    const headers = { ...request.headers }
    const forwardedHost = headers['x-forwarded-host']
    if (options.restoresHost && forwardedHost !== undefined) headers.host = String(forwardedHost)
    const onward = sendRequest({ hostname, port, method, path: url, headers, agent: false }, (reply) => {
      const name = String(headers[caseHeader] ?? '')
      seen.set(name, [...(seen.get(name) ?? []), { method, target: url }])
      // Node joins repeated lines of every field but Set-Cookie.
      const { link } = reply.headers
      if (link !== undefined) links.add(String(link))
      response.writeHead(reply.statusCode ?? 502, reply.rawHeaders.filter(isEndToEnd))
      reply.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  }
  const { origin: address, close } = await startHttpServer(pass)
  return {
    origin: address,
    passages: (name) => seen.get(name) ?? [],
    links,
    close,
  }
}

const hopByHop = new Set(['connection', 'keep-alive', 'transfer-encoding'])

/** Keeps name and value of the lines that are not about this one connection. */
function isEndToEnd(_: string, index: number, lines: readonly string[]): boolean {
  return !hopByHop.has((lines[index - (index % 2)] ?? '').toLowerCase())
}
