import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { startHttpServer } from '../../support/http-server.ts'

/** What goes wrong with a request whose target names it. */
export const faults = [
  'reset',
  'half-head',
  'half-content',
  'garbage',
  'unavailable',
  'broken',
  'silent',
] as const
export type FaultName = (typeof faults)[number]

/** Plays all services of the soak. */
export type FaultyUpstream = {
  readonly origin: string
  /** Requests whose head has arrived. */
  readonly asked: () => number
  close(): Promise<void>
}

const large = Buffer.alloc(256 * 1024, 'x')

const fail = (fault: FaultName, outgoing: ServerResponse): void => {
  const socket = outgoing.socket
  switch (fault) {
    case 'reset':
      socket?.resetAndDestroy()
      return
    case 'half-head':
      socket?.end('HTTP/1.1 200 OK\r\nContent-Le')
      return
    case 'half-content':
      socket?.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
      return
    case 'garbage':
      socket?.end('no HTTP at all\r\n\r\n')
      return
    case 'unavailable':
      outgoing.writeHead(503, { 'Retry-After': '60' }).end('{}')
      return
    case 'broken':
      outgoing.writeHead(500).end('{}')
      return
    case 'silent':
      return
  }
}

const json = (outgoing: ServerResponse, content: unknown): void => {
  const text = JSON.stringify(content)
  outgoing
    .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) })
    .end(text)
}

const item = (id: number) => ({
  id,
  type: 'post',
  title: { rendered: `Post ${id}` },
  text: 'word '.repeat(300),
})

const response = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
  const target = incoming.url ?? ''
  const fault = /fault-([a-z]+(?:-[a-z]+)*)/.exec(target)?.[1]
  for await (const _ of incoming) {
    // All content is taken.
  }
  if (fault !== undefined) {
    fail(fault as FaultName, outgoing)
    return
  }
  if (target.includes('slow')) await sleep(300)
  if (target.includes('large')) {
    outgoing.writeHead(200, { 'Content-Length': large.length }).end(large)
    return
  }
  const id = /\/(\d+)(?:\?|$)/.exec(target)?.[1]
  json(outgoing, id === undefined ? [item(1), item(2), item(3)] : item(Number(id)))
}

/** Starts it on a free port of 127.0.0.1. */
export const startFaultyUpstream = async (): Promise<FaultyUpstream> => {
  let asked = 0
  const server = await startHttpServer((incoming, outgoing) => {
    asked += 1
    // A client that breaks off within a content ends only that request.
    void response(incoming, outgoing).catch(() => outgoing.destroy())
  })
  return { origin: server.origin, asked: () => asked, close: server.close }
}
