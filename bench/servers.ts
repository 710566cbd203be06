import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'
import { indexContent, listContent } from './content.ts'
import type { ReadyAnswer } from './peer.ts'

/**
 * Servers that run as `bench/run.ts serve NAME PORT ARGUMENT`, each in a process of its own: the origin behind all
 * peers, and the two bare peers.
 */
export const servers: Readonly<Record<string, (port: number, argument: string) => Promise<void>>> = {
  origin: serveOrigin,
  'node-http': serveFromMap,
  'http-proxy': serveProxy,
}

/** Answers every target with the same list; says no-store below /plain, so that no cache keeps it. */
async function serveOrigin(port: number): Promise<void> {
  const list = Buffer.from(listContent)
  const index = Buffer.from(indexContent)
  const server = createServer((request, response) => {
    const isPlain = request.url?.startsWith('/plain') ?? false
    const content = request.url?.endsWith('/wp-json/') ? index : list
    response.writeHead(200, {
      'Content-Type': 'application/json; charset=UTF-8',
      'Content-Length': content.length,
      ...(isPlain ? { 'Cache-Control': 'no-store' } : { 'X-WP-Total': '8', 'X-WP-TotalPages': '1' }),
    })
    response.end(content)
  })
  server.keepAliveTimeout = 60_000
  server.listen(port, '127.0.0.1')
}

/** The least that node:http can do: a ready answer looked up by its target. */
async function serveFromMap(port: number, answerFile: string): Promise<void> {
  const answer = JSON.parse(await readFile(answerFile, 'utf8')) as ReadyAnswer & { target: string }
  const stored = new Map([[answer.target, { fields: answer.fields, content: Buffer.from(answer.content) }]])
  createServer((request, response) => {
    const found = stored.get(request.url ?? '')
    if (found === undefined) {
      response.writeHead(404).end()
      return
    }
    response.writeHead(200, found.fields)
    response.end(found.content)
  }).listen(port, '127.0.0.1')
}

/** @fastify/http-proxy with nothing around it. */
async function serveProxy(port: number, originPort: string): Promise<void> {
  const server = fastify({ logger: false })
  await server.register(httpProxy, { upstream: `http://127.0.0.1:${originPort}` })
  await server.listen({ port, host: '127.0.0.1' })
}
