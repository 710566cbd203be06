import { Readable } from 'node:stream'
import { GatewayError } from '../../errors.ts'
import { readBody } from '../../http/bodies/read-body.ts'
import type { Reservation } from '../../http/bounds/byte-budget.ts'
import { discard } from '../../http/message.ts'
import type { ContentInspector } from '../../service/contract.ts'

export const tooManyBodies = (): GatewayError =>
  new GatewayError('overloaded', { detail: 'Too many request bodies are in flight.', retryAfterSeconds: 1 })

async function* checkedPieces(
  content: Readable,
  maxBytes: number,
  inspector: ContentInspector | undefined,
): AsyncGenerator<Buffer> {
  let bytes = 0
  let pending: Buffer | undefined
  for await (const chunk of content as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new GatewayError('content_too_large')
    const refusal = inspector?.read(chunk)
    if (refusal !== undefined) throw new GatewayError('ambiguous_request', { detail: refusal })
    if (pending !== undefined) yield pending
    pending = inspector?.ifEnded() === undefined ? undefined : chunk
    if (pending === undefined) yield chunk
  }
  const refusal = inspector?.ifEnded()
  if (refusal !== undefined) throw new GatewayError('ambiguous_request', { detail: refusal })
}

/**
 * The content, broken off with content_too_large as soon as it exceeds the bound, and with ambiguous_request before a piece that the
 * inspector refuses. Nothing is read ahead, but for a piece that must not be the last one.
 */
export const checkedContent = (
  content: Readable,
  maxBytes: number,
  inspector: ContentInspector | undefined,
): Readable =>
  Readable.from(checkedPieces(content, maxBytes, inspector), { objectMode: false, highWaterMark: 1 })

/** Reads a request's content whole, or throws content_too_large as soon as it is known to exceed the bound, `overloaded` when too much is held already. */
export const readContent = async (
  content: Buffer | Readable,
  maxBytes: number,
  signal: AbortSignal,
  reservation: Reservation,
): Promise<Buffer> => {
  if (Buffer.isBuffer(content)) {
    if (content.length > maxBytes) throw new GatewayError('content_too_large')
    return content
  }
  const reading = await readBody(content, maxBytes, reservation).catch((error: unknown) => {
    if (error instanceof GatewayError) throw error
    throw new GatewayError(signal.aborted ? 'client_gone' : 'invalid_request', { cause: error })
  })
  if (reading.kind === 'whole') return reading.content
  discard(content)
  throw reading.kind === 'too-large' ? new GatewayError('content_too_large') : tooManyBodies()
}
