import { isEventStream } from '../../http/headers/media-type.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { isGetOrHead } from '../../http/methods.ts'
import type { ValidatedContext } from '../request-context.ts'

/** How the response to a write reaches the client: as it arrives, or once it was read for what the write has changed. */
export type ResponseBody = 'streamed' | 'whole'

/** By the request: a response whose content shows what the write has changed is read whole. */
export const expectedBody = ({
  origin,
  method,
  service,
  matching,
  content,
}: ValidatedContext): ResponseBody => {
  // An item of a batch has no connection.
  if (origin === 'batch' || isGetOrHead(method)) return 'whole'
  if (matching.kind === 'unlisted') return 'streamed'
  const isUpload = content !== undefined && !Buffer.isBuffer(content)
  return service.contract.readsWriteResponse(matching.row, isUpload) ? 'whole' : 'streamed'
}

/** An event stream has no end to wait for. */
export const bodyOf = (
  expected: ResponseBody,
  { origin }: ValidatedContext,
  response: GatewayResponse,
): ResponseBody => (origin !== 'batch' && isEventStream(response) ? 'streamed' : expected)
