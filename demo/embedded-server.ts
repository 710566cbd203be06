import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { readBody } from '../src/http/bodies/read-body.ts'
import type { RequestHeaders } from '../src/http/headers/header-lines.ts'

/** A running embedded upstream: a real HTTP server on loopback. */
export type EmbeddedUpstream = {
  /** Origin to configure as a target, e.g. `http://127.0.0.1:40123`. */
  readonly origin: string
  /** Ends every connection and frees the port. */
  close(): Promise<void>
}

/** What an embedded upstream saw, for tests that count requests or look at what the gateway sent. */
export type SeenRequest = {
  readonly method: string
  readonly target: string
  readonly fields: RequestHeaders
}

/** The seam for tests; the demo sets neither. */
export type EmbeddedSettings = {
  /** Milliseconds to wait before each response. */
  readonly latencyMs?: number
  /** Called once for each request, before it is answered. */
  readonly onRequest?: (request: SeenRequest) => void
}

/** The embedded servers accept what WordPress accepts, whatever the gateway in front is set to. */
export const lenientValidation = { unknownParameters: 'strip', trackingParameters: [] } as const

/** A request with its complete content. */
export type ReceivedRequest = SeenRequest & { readonly content: Buffer }

/** A response with its complete content. */
export type EmbeddedReply = {
  readonly status: number
  readonly fields: Readonly<Record<string, string>>
  readonly content: Buffer
}

/** Uploads included; the gateway's own limit is lower or equal in every shipped configuration. */
const maxContentBytes = 64 * 1024 * 1024

const send = (outgoing: ServerResponse, reply: EmbeddedReply): void => {
  // The head is written on its own so that no Content-Length is added: WordPress answers in chunks.
  outgoing.writeHead(reply.status, { ...reply.fields })
  outgoing.end(reply.content.length === 0 ? undefined : reply.content)
}

const brief = (status: number): EmbeddedReply => ({
  status,
  fields: { Connection: 'close' },
  content: Buffer.alloc(0),
})

/** Listens on a free loopback port and answers each request with what `handle` returns. */
export const serveEmbedded = async (
  handle: (request: ReceivedRequest) => EmbeddedReply,
  settings: EmbeddedSettings,
): Promise<EmbeddedUpstream> => {
  const latencyMs = settings.latencyMs ?? 0
  const response = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const seen: SeenRequest = {
      method: incoming.method ?? 'GET',
      target: incoming.url ?? '/',
      fields: incoming.headers,
    }
    settings.onRequest?.(seen)
    const reading = await readBody(incoming, maxContentBytes)
    if (latencyMs > 0) await sleep(latencyMs)
    send(outgoing, reading.kind === 'whole' ? handle({ ...seen, content: reading.content }) : brief(413))
  }
  const server = createServer((incoming, outgoing) => {
    response(incoming, outgoing).catch(() => {
      if (outgoing.headersSent) outgoing.destroy()
      else send(outgoing, brief(500))
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
