import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { gzipSync } from 'node:zlib'
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'
import { Pool } from 'undici'
import { keyPair } from '../test/support/certificates.ts'
import { contents, indexContent } from './content.ts'
import type { ReadyResponse } from './peer.ts'

/**
 * Servers that run as `bench/run.ts serve NAME PORT ARGUMENT`, each in a separate process: the origin behind all
 * peers, and the peers that are bare Node.
 */
export const servers: Readonly<Record<string, (port: number, argument: string) => Promise<void>>> = {
  origin: serveOrigin,
  'node-http': async (port, file) => void createServer(await fromMap(file)).listen(port, '127.0.0.1'),
  'node-https': async (port, file) =>
    void createHttpsServer(keyPair('good'), await fromMap(file)).listen(port, '127.0.0.1'),
  'node-http2': serveHttp2,
  'http-proxy': serveProxy,
  dispatch: serveDispatch,
}

/** Answers every target with a list; says no-store below /plain, so that no cache keeps it. */
async function serveOrigin(port: number): Promise<void> {
  const ready = contents.map(({ ending, tag, text }) => ({ ending, tag, content: Buffer.from(text) }))
  const index = Buffer.from(indexContent)
  const server = createServer((request, response) => {
    const target = request.url ?? ''
    const found = ready.findLast(({ ending }) => target.endsWith(ending))
    const content = target.endsWith('/wp-json/') ? index : (found?.content ?? index)
    response.writeHead(200, {
      'Content-Type': 'application/json; charset=UTF-8',
      'Content-Length': content.length,
      ...(target.startsWith('/plain')
        ? { 'Cache-Control': 'no-store' }
        : { 'Cache-Control': 'public, max-age=3600', ETag: found?.tag, 'X-WP-Total': '8' }),
    })
    if (request.method !== 'POST') response.end(content)
    else request.resume().once('end', () => response.end(content))
  })
  server.keepAliveTimeout = 60_000
  server.listen(port, '127.0.0.1')
}

type Held = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly content: Buffer | undefined
}

const withoutContent = new Set(['content-length', 'content-type', 'content-encoding'])

type Find = (target: string, headers: IncomingMessage['headers']) => Held | undefined

/** A ready response looked up by its target, or its 304. */
async function readResponses(responseFile: string): Promise<Find> {
  const responses = JSON.parse(await readFile(responseFile, 'utf8')) as readonly ReadyResponse[]
  const plain = new Map<string, Held>()
  const coded = new Map<string, Held>()
  const unchanged = new Map<string, Held>()
  for (const { target, status, headers, content } of responses) {
    const octets = Buffer.from(content)
    const zipped = gzipSync(octets)
    plain.set(target, { status, headers, content: octets })
    const length = { 'content-length': String(zipped.length), 'content-encoding': 'gzip' }
    coded.set(target, { status, headers: { ...headers, ...length }, content: zipped })
    const rest = Object.entries(headers).filter(([name]) => !withoutContent.has(name))
    unchanged.set(target, { status: 304, headers: Object.fromEntries(rest), content: undefined })
  }
  const [item] = responses
  /** One of a working set: stored with its own content when it is first requested, as a cache would. */
  const storeItem = (target: string): Held | undefined => {
    const one = target.startsWith('/files/item/') ? plain.get(item?.target ?? '') : undefined
    if (one === undefined) return undefined
    const own = { ...one, content: one.content && Buffer.from(one.content) }
    plain.set(target, own)
    return own
  }
  return (target, headers) => {
    const from = headers['accept-encoding'] === 'gzip' ? coded : plain
    const found = from.get(target) ?? storeItem(target)
    const known = headers['if-none-match']
    return known !== undefined && known === found?.headers['etag'] ? unchanged.get(target) : found
  }
}

/** The least that node:http can do. */
async function fromMap(responseFile: string): Promise<RequestListener> {
  const find = await readResponses(responseFile)
  return ({ url = '', headers }, response) => {
    const found = find(url, headers)
    if (found === undefined) response.writeHead(404).end()
    else response.writeHead(found.status, found.headers).end(found.content)
  }
}

/** The least that node:http2 can do. */
async function serveHttp2(port: number, responseFile: string): Promise<void> {
  const find = await readResponses(responseFile)
  const server = createSecureServer(keyPair('good'))
  server.on('stream', (stream, headers) => {
    const found = find(headers[':path'] ?? '', headers)
    const content = found?.content
    stream.respond(
      { ':status': found?.status ?? 404, ...found?.headers },
      { endStream: content === undefined },
    )
    if (content !== undefined) stream.end(content)
  })
  server.listen(port, '127.0.0.1')
}

/** @fastify/http-proxy with nothing around it. */
async function serveProxy(port: number, originPort: string): Promise<void> {
  const server = fastify({ logger: false })
  await server.register(httpProxy, { upstream: `http://127.0.0.1:${originPort}` })
  await server.listen({ port, host: '127.0.0.1' })
}

/** The least that Fastify and undici can do for a GET. */
async function serveDispatch(port: number, originPort: string): Promise<void> {
  const server = fastify({ logger: false })
  const pool = new Pool(`http://127.0.0.1:${originPort}`)
  server.get('/*', (request, reply) => {
    reply.hijack()
    const { raw } = reply
    const handler = {
      onConnect: () => {},
      onHeaders: (status: number, headers: readonly Buffer[]) => {
        raw.writeHead(
          status,
          headers.map((part) => part.toString('latin1')),
        )
        return true
      },
      onData: (chunk: Buffer) => raw.write(chunk),
      onComplete: () => raw.end(),
      onError: (error: Error) => raw.destroy(error),
    }
    pool.dispatch({ method: 'GET', path: request.raw.url as string, headers: {} }, handler as object)
  })
  await server.listen({ port, host: '127.0.0.1' })
}
