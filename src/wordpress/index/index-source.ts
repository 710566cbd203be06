import type { Clock } from '../../clock.ts'
import type { IndexRefusal } from '../../service/announced.ts'

/** The upstream's answer at its REST root. */
export type IndexAnswer = { readonly status: number; readonly content: Buffer }

/** How the source sends requests; all times in milliseconds. */
export type IndexSourceOptions = {
  readonly clock: Clock
  readonly refreshMs: number
  readonly timeoutMs: number
  /** After a failure, requests cause no new attempt before this has passed. */
  readonly retryAfterMs: number
  fetchIndex(signal: AbortSignal): Promise<IndexAnswer>
  /** Takes a complete response; returns the reason when it is unusable. */
  accept(content: Buffer): 'accepted' | IndexRefusal
  /** `cause` is the error, if there was one; for the log. */
  failed(reason: IndexRefusal, cause: unknown): void
}

type Failure = { readonly reason: IndexRefusal; readonly cause: unknown }

type IndexAttempt = { readonly generation: number; readonly done: Promise<void> }

/** Keeps an upstream's index up to date: one request at a time, on a timer and when asked. It has sent no request yet. */
export const createIndexSource = (options: IndexSourceOptions) => {
  const closing = new AbortController()
  let generation = 0
  let acceptedGeneration = -1
  let inFlight: IndexAttempt | undefined
  let timer: NodeJS.Timeout | undefined
  let lastFailureMs = Number.NEGATIVE_INFINITY

  const schedule = (): void => {
    clearTimeout(timer)
    if (closing.signal.aborted) return
    timer = setTimeout(() => void refresh(), options.refreshMs)
    timer.unref()
  }

  const ask = async (): Promise<IndexAnswer | Failure> => {
    const timeout = AbortSignal.timeout(options.timeoutMs)
    try {
      return await options.fetchIndex(AbortSignal.any([closing.signal, timeout]))
    } catch (cause) {
      return { reason: timeout.aborted ? 'timeout' : 'unreachable', cause }
    }
  }

  const attempt = async (begun: number): Promise<void> => {
    if (closing.signal.aborted) return
    const answer = await ask()
    if (closing.signal.aborted) return
    const failure = 'reason' in answer ? answer : take(answer)
    if (failure === undefined) {
      acceptedGeneration = begun
      lastFailureMs = Number.NEGATIVE_INFINITY
    } else {
      lastFailureMs = options.clock.monotonic()
      options.failed(failure.reason, failure.cause)
    }
  }

  const take = (answer: IndexAnswer): Failure | undefined => {
    if (answer.status !== 200) return { reason: 'status', cause: undefined }
    try {
      const outcome = options.accept(answer.content)
      return outcome === 'accepted' ? undefined : { reason: outcome, cause: undefined }
    } catch (cause) {
      // A response must never end the process; the last good index stays.
      return { reason: 'unusable', cause }
    }
  }

  /** Sends a request now. */
  const refresh = (): Promise<void> => {
    // An attempt that began before an invalidation may carry old data, so it does not count.
    if (inFlight?.generation === generation) return inFlight.done
    const begun = generation
    const before = inFlight?.done ?? Promise.resolve()
    const done: Promise<void> = before
      .then(() => attempt(begun))
      .finally(() => {
        if (inFlight?.done === done) inFlight = undefined
        schedule()
      })
    inFlight = { generation: begun, done }
    return done
  }

  /** Is a current index available? */
  const isReady = (): boolean => acceptedGeneration === generation
  const mayAsk = (): boolean => options.clock.monotonic() - lastFailureMs >= options.retryAfterMs

  return {
    /** Begins the first refresh and the timer, which does not keep the process alive. */
    start: (): void => void refresh(),
    /** Marks the accepted index outdated: `ready` waits for a response requested after this moment. */
    invalidate: (): void => {
      generation++
    },
    isReady,
    /** Resolves, never rejects, after an attempt when one is due; at once otherwise. */
    ready: async (): Promise<void> => {
      if (isReady()) return
      if (inFlight !== undefined || mayAsk()) await refresh()
    },
    refresh,
    close: async (): Promise<void> => {
      clearTimeout(timer)
      closing.abort()
      await inFlight?.done
    },
  }
}
