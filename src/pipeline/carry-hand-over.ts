import { pipeline, type Readable } from 'node:stream'
import type { GatewayResponse, HandOver, ShapedHead } from '../http/message.ts'

const throughOf = (
  content: GatewayResponse['content'],
  { through }: ShapedHead,
): GatewayResponse['content'] => {
  if (through === undefined) return content
  if (content === undefined || Buffer.isBuffer(content)) through.end(content)
  // An error on either side ends both; who reads sees it.
  else pipeline(content, through, () => {})
  return through
}

const discard = (content: Buffer | Readable | undefined): void => {
  if (content !== undefined && !Buffer.isBuffer(content)) content.destroy()
}

/** Forwards what the phases handed over. The head of the answer passes them once more before anybody sees a byte of it. */
export const carryHandOver = async (handOver: HandOver): Promise<GatewayResponse> => {
  let answer: GatewayResponse | undefined
  try {
    answer = await handOver.forward()
    const head = await handOver.shape({ status: answer.status, fields: answer.fields })
    return {
      kind: 'response',
      status: head.status,
      fields: head.fields,
      content: throughOf(answer.content, head),
    }
  } catch (error) {
    discard(answer?.content)
    return handOver.failed(error)
  }
}
