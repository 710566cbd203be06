import type { Answer, GatewayResponse, HandOver, Outcome, ShapedHead } from '../http/message.ts'

/** Continues with an outcome at once when it is there: a hit must not wait for the microtask queue. */
export const whenAnswered = (answer: Answer, proceed: (outcome: Outcome) => Answer): Answer =>
  answer instanceof Promise ? answer.then(proceed) : proceed(answer)

/** The hand-over whose head is changed once more, after what the phases behind have done to it. */
export const reshaped = (
  handOver: HandOver,
  change: (head: ShapedHead) => ShapedHead | Promise<ShapedHead>,
  failed: (response: GatewayResponse) => GatewayResponse,
): HandOver => ({
  ...handOver,
  shape: async (head) => change(await handOver.shape(head)),
  failed: async (cause) => failed(await handOver.failed(cause)),
})
