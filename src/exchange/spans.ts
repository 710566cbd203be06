import type { ResponseHead } from '../http/message.ts'
import type { AttemptEvent } from '../upstream/events.ts'
import type { RequestContext } from './request-context.ts'

export type SpanName = 'validate' | 'cache' | 'upstream'

export type OpenSpan = {
  /** `head`: the response, where there is one. */
  end(head: ResponseHead | undefined): void
  failed(error: unknown): void
  attempted(attempt: AttemptEvent): void
}

/** Opens a span; undefined where the request is not recorded. */
export type OpenSpans = (context: RequestContext, name: SpanName) => OpenSpan | undefined

const watched = async <Result>(
  span: OpenSpan,
  run: () => Result | Promise<Result>,
  head: (result: Result) => ResponseHead | undefined,
): Promise<Result> => {
  try {
    const result = await run()
    span.end(head(result))
    return result
  } catch (error) {
    span.failed(error)
    throw error
  }
}

/** Does a part of the way of a request within a span of its trace. `head`: the response that the part has made. */
export const inSpan = <Result>(
  open: OpenSpans | undefined,
  context: RequestContext,
  name: SpanName,
  run: () => Result | Promise<Result>,
  head: (result: Result) => ResponseHead | undefined,
): Result | Promise<Result> => {
  const span = open?.(context, name)
  return span === undefined ? run() : watched(span, run, head)
}
