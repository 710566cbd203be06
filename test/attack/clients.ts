import { setMaxListeners } from 'node:events'
import { type IncomingHttpHeaders, request as plainRequest } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { request as tlsRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Scene } from './scene.ts'

/** Attackers come from 127.0.0.2 and, where they are many, from 127.0.1.1, 127.0.1.2 and so on. */
export const attacker = '127.0.0.2'
export const attackers = (count: number): readonly string[] =>
  count === 1 ? [attacker] : Array.from({ length: count }, (_, at) => `127.0.1.${at + 1}`)

export const pick = <Value>(values: readonly Value[], at: number): Value =>
  values[at % values.length] as Value

/** Resolves with the signal. */
export const over = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

/** Sum of a metric of the gateway; NaN while it cannot be read. */
const metricOf = async ({ gateway }: Scene, name: string): Promise<number> => {
  const text = await fetch(`${gateway.adminOrigin}/metrics`, { signal: AbortSignal.timeout(5_000) })
    .then((response) => response.text())
    .catch(() => undefined)
  const values = [...(text ?? `${name} NaN`).matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))]
  return values.reduce((total, [, value]) => total + Number(value), 0)
}

/** What is left of it when the gateway has had ten seconds to give it up. */
export const leftOf = async (scene: Scene, name: string): Promise<number> => {
  const latest = performance.now() + 10_000
  for (;;) {
    const left = await metricOf(scene, name)
    if (left === 0 || performance.now() > latest) return left
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

export type Reply = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Milliseconds until the response was there. */
  readonly ms: number
}

export type Question = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly content?: string | Buffer
  readonly isChunked?: boolean
  readonly from?: string
  readonly timeoutMs?: number
}

const none: Reply = { status: 0, headers: {}, text: '', ms: 0 }

/** One request on its own connection; status 0 when there was no response. */
export const ask = (origin: string, path: string, question: Question = {}): Promise<Reply> =>
  new Promise((resolve) => {
    const began = performance.now()
    const { method = 'GET', content, headers: headerLines = {} } = question
    const length =
      content === undefined || question.isChunked
        ? {}
        : { 'Content-Length': String(Buffer.byteLength(content)) }
    const send = origin.startsWith('https:') ? tlsRequest : plainRequest
    const headers: Record<string, string | string[]> = { ...length }
    for (const [name, value] of Object.entries(headerLines)) {
      headers[name] = typeof value === 'string' ? value : [...value]
    }
    const request = send(
      origin + path,
      {
        method,
        headers,
        agent: false,
        localAddress: question.from ?? attacker,
        rejectUnauthorized: false,
        timeout: question.timeoutMs ?? 8_000,
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.once('close', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString('latin1'),
            ms: performance.now() - began,
          }),
        )
      },
    )
    request.once('timeout', () => request.destroy())
    request.once('error', () => resolve({ ...none, ms: performance.now() - began }))
    request.end(content)
  })

/** A connection, with TLS where the gateway listens with it. */
export const dial = ({ origin, resources }: Scene, from: string, alpn?: 'h2'): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const { hostname: host, port, protocol } = new URL(origin)
    const where = { host, port: Number(port), localAddress: from }
    const isTls = protocol === 'https:'
    const socket = isTls
      ? connectTls({ ...where, rejectUnauthorized: false, ...(alpn && { ALPNProtocols: [alpn] }) })
      : connect(where)
    resources.socket(socket)
    socket.once(isTls ? 'secureConnect' : 'connect', () => resolve(socket))
    socket.once('close', () => reject(new Error('the connection was closed')))
  })

export const dialHttp2 = (
  { origin, resources }: Scene,
  from: string,
  initialWindowSize = 65_535,
): Promise<ClientHttp2Session> =>
  new Promise((resolve, reject) => {
    const { hostname: host, port } = new URL(origin)
    const client = connectHttp2(origin, {
      // Node takes `localAddress` here too; its types do not say so.
      createConnection: () =>
        connectTls({
          host,
          port: Number(port),
          rejectUnauthorized: false,
          ALPNProtocols: ['h2'],
          ...{ localAddress: from },
        }),
      settings: { initialWindowSize },
    })
    resources.add(() => client.destroy())
    client.on('error', reject)
    client.once('close', () => reject(new Error('the connection was closed')))
    client.once('remoteSettings', () => resolve(client))
  })

type Flood = {
  readonly connections: number
  readonly addresses: readonly string[]
  /** Requests in all; none after the signal either. */
  readonly max: number
  /** The head of each, without the empty line. */
  readonly head: (number: number, from: string) => string
}

/** Sends requests on many connections, each the next one when the response to the last one has begun. Tells the responses by status. */
export const flood = async (
  scene: Scene,
  signal: AbortSignal,
  options: Flood,
): Promise<Record<string, number>> => {
  setMaxListeners(0, signal)
  const statuses: Record<string, number> = {}
  let sent = 0
  const goesOn = (): boolean => !signal.aborted && sent < options.max
  const one = (from: string): Promise<void> =>
    dial(scene, from).then(
      (socket) =>
        new Promise<void>((resolve) => {
          const next = (): void => {
            if (!goesOn()) {
              socket.destroy()
              return
            }
            sent += 1
            socket.write(`${options.head(sent, from)}\r\nHost: a\r\n\r\n`, 'latin1')
          }
          socket.on('data', (chunk) => {
            const text = chunk.toString('latin1')
            const status = /HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
            if (status === undefined) return
            statuses[status] = (statuses[status] ?? 0) + 1
            next()
          })
          socket.once('close', () => resolve())
          signal.addEventListener('abort', () => socket.destroy(), { once: true })
          next()
        }),
      () => {},
    )
  const keepOn = async (at: number): Promise<void> => {
    const from = pick(options.addresses, at)
    while (goesOn()) {
      await one(from)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  await Promise.all(Array.from({ length: options.connections }, (_, at) => keepOn(at)))
  return statuses
}

/** The same as `ask` over a stream of an HTTP/2 connection. */
export const askHttp2 = async (scene: Scene, path: string, question: Question = {}): Promise<Reply> => {
  const began = performance.now()
  const client = await dialHttp2(scene, question.from ?? attacker)
  const stream = client.request(
    {
      ':method': question.method ?? 'GET',
      ':path': path,
      ...(question.headers as Record<string, string> | undefined),
    },
    // Node would send GET, HEAD and DELETE without the content that is written.
    { endStream: question.content === undefined },
  )
  stream.setTimeout(question.timeoutMs ?? 8_000, () => stream.destroy())
  stream.on('error', () => {})
  let headers: IncomingHttpHeaders = {}
  const chunks: Buffer[] = []
  stream.on('response', (head) => {
    headers = head as IncomingHttpHeaders
  })
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.end(question.content)
  await new Promise<void>((resolve) => stream.once('close', () => resolve()))
  client.destroy()
  return {
    status: Number(headers[':status' as 'host'] ?? 0),
    headers,
    text: Buffer.concat(chunks).toString('latin1'),
    ms: performance.now() - began,
  }
}
