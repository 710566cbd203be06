/** What stops a batch before its end. */
export type StopReason = 'client-gone' | 'deadline'

/** One signal for both reasons to stop. */
export type StopWatch = {
  readonly signal: AbortSignal
  reason(): StopReason | undefined
  /** To be called when the batch is over. */
  release(): void
}

/** Watches for the client that goes, and for the deadline (0 = none). */
export const stopWatch = (client: AbortSignal, deadlineMs: number): StopWatch => {
  const stop = new AbortController()
  let reason: StopReason | undefined
  const stopFor = (why: StopReason) => {
    reason ??= why
    stop.abort()
  }
  const gone = () => stopFor('client-gone')
  const timer = deadlineMs > 0 ? setTimeout(() => stopFor('deadline'), deadlineMs) : undefined
  client.addEventListener('abort', gone, { once: true })
  if (client.aborted) gone()
  return {
    signal: stop.signal,
    reason: () => reason,
    release() {
      clearTimeout(timer)
      client.removeEventListener('abort', gone)
    },
  }
}

/** Resolves with the promise, or with the stop. */
export const unlessStopped = (promise: Promise<void>, stop: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      stop.removeEventListener('abort', over)
      resolve()
    }
    stop.addEventListener('abort', over, { once: true })
    void promise.then(over)
    if (stop.aborted) over()
  })
