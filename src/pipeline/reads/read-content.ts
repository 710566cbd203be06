import { pipeline, type Readable, Transform } from 'node:stream'
import { GatewayError } from '../../errors.ts'
import { overheadOfChunk, type Reservation } from '../../http/bounds/byte-budget.ts'

/** The content, broken off with content_too_large as soon as it exceeds the bound: for one that did not say how long it is. */
export const boundedContent = (content: Readable, mostBytes: number): Readable => {
  let bytes = 0
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > mostBytes) done(new GatewayError('content_too_large'))
      else done(null, chunk)
    },
  })
  // An error on either side ends both; the reader gets it.
  pipeline(content, bounded, () => {})
  return bounded
}

/** Reads a request's content whole, or throws content_too_large as soon as it is known to exceed the bound, `overloaded` when too much is held already. */
export const readContent = async (
  content: Buffer | Readable,
  mostBytes: number,
  signal: AbortSignal,
  reservation: Reservation,
): Promise<Buffer> => {
  if (Buffer.isBuffer(content)) {
    if (content.length > mostBytes) throw new GatewayError('content_too_large')
    return content
  }
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of content as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > mostBytes) throw new GatewayError('content_too_large')
      if (!reservation.reserve(chunk.length + overheadOfChunk)) {
        throw new GatewayError('overloaded', {
          detail: 'Too many request bodies are in flight.',
          retryAfterSeconds: 1,
          unsent: true,
        })
      }
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw new GatewayError(signal.aborted ? 'client_gone' : 'invalid_request', { cause: error })
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
}
