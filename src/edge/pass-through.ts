import { pipeline, type Readable, Transform } from 'node:stream'
import type {} from '@fastify/http-proxy'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import type { GatewayResponse, HandOver, ShapedHead } from '../http/message.ts'

/** Fields as undici gives them to reply-from, as flat lines. */
const asLines = (fields: Readonly<Record<string, string | string[] | undefined>>): string[] =>
  Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined) return []
    return Array.isArray(value) ? value.flatMap((one) => [name, one]) : [name, value]
  })

/** Refuses an upload without Content-Length as soon as it exceeds the bound. */
const bounded = (mostBytes: number): Transform => {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > mostBytes) done(new GatewayError('content_too_large'))
      else done(null, chunk)
    },
  })
}

/** What @fastify/http-proxy's reply.from takes. */
type FromOptions = NonNullable<Parameters<FastifyReply['from']>[1]>

type Answer = {
  readonly statusCode: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly stream: Readable
}

export type Carrier = {
  readonly placeholderOrigin: string
  /** Under which the dispatcher finds the client's signal among the fields. */
  readonly signalKey: symbol
  /** The same for who hears of interim responses. */
  readonly interimKey: symbol
  readonly uploadBytes: number
  /** Sends an answer to the client. */
  send(reply: FastifyReply, response: GatewayResponse): void
  /** The content of a head that was sent broke off. */
  broken(error: Error): void
}

const splitTarget = (target: string): readonly [string, string] => {
  const at = target.indexOf('?')
  return at === -1 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
}

const framing = (request: FastifyRequest): Record<string, string> => {
  const length = request.headers['content-length']
  return length === undefined ? {} : { 'content-length': length }
}

const sendStreaming = (carrier: Carrier, reply: FastifyReply, head: ShapedHead, answer: Answer): void => {
  const { through } = head
  const source = answer.stream
  if (through === undefined) {
    carrier.send(reply, { kind: 'response', status: head.status, fields: head.fields, content: source })
    return
  }
  pipeline(source, through, () => {})
  carrier.send(reply, { kind: 'response', status: head.status, fields: head.fields, content: through })
}

/** Lets @fastify/http-proxy's reply.from carry an exchange: request and answer are streams, the head passes the phases once more. */
export const carry = (
  carrier: Carrier,
  request: FastifyRequest,
  reply: FastifyReply,
  handOver: HandOver,
): FastifyReply => {
  const [path, query] = splitTarget(handOver.upstreamTarget)
  let ended = false
  let refusal: GatewayError | undefined

  const fail = async (cause: unknown): Promise<void> => {
    if (ended) return
    ended = true
    carrier.send(reply, await handOver.failed(refusal ?? cause))
  }
  const answer = async (given: Answer): Promise<void> => {
    // Destroyed before it has a reader, it fails; an error that nobody takes would end the process.
    given.stream.on('error', () => {})
    if (ended) {
      given.stream.destroy()
      return
    }
    try {
      const head = await handOver.shape({ status: given.statusCode, fields: asLines(given.headers) })
      ended = true
      sendStreaming(carrier, reply, head, given)
    } catch (error) {
      given.stream.destroy()
      await fail(error)
    }
  }

  if (request.body !== undefined && request.headers['content-length'] === undefined) {
    const limit = bounded(carrier.uploadBytes)
    limit.once('error', (error) => {
      // Our own reason is worth more than what the broken stream looks like from the other end.
      if (error instanceof GatewayError) refusal = error
    })
    pipeline(request.raw, limit, () => {})
    request.body = limit
  }
  const options: FromOptions = {
    method: handOver.method as NonNullable<FromOptions['method']>,
    getUpstream: () => carrier.placeholderOrigin,
    queryString: () => query,
    rewriteRequestHeaders: () => ({
      ...handOver.fields,
      ...framing(request),
      [carrier.signalKey]: handOver.signal,
      [carrier.interimKey]: handOver.interim,
    }),
    // The head is written from `shape`, so nothing is copied onto the reply.
    rewriteHeaders: () => ({}),
    // The upstream room retries; reply-from would repeat a GET ten times on 503.
    retryDelay: () => null,
    onResponse: (_request, _reply, given) => void answer(given as unknown as Answer),
    onError: (_reply, { error }) => void fail(error),
  }
  return reply.from(path, options)
}
