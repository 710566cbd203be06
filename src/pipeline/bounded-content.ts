import { pipeline, type Readable, Transform } from 'node:stream'
import { GatewayError } from '../errors.ts'

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
  // An error on either side ends both; who reads sees it.
  pipeline(content, bounded, () => {})
  return bounded
}
