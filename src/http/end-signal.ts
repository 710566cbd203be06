type AbortListener = Parameters<AbortSignal['addEventListener']>[1]

const called = (listener: AbortListener): void => {
  const event = { type: 'abort' } as Event
  if (typeof listener === 'function') listener(event)
  else listener.handleEvent(event)
}

/**
 * A lighter AbortSignal, of which every forwarded request makes one: no reader waits for the response any more. Node's own is an
 * EventTarget, and to make one and listen to it costs a twentieth of a pass-through. Not for Node's functions, which take
 * only their own.
 */
export class EndSignal implements AbortSignal {
  aborted = false
  reason: unknown
  onabort = null
  #listeners: AbortListener[] = []

  /** The first call counts. */
  end(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const listeners = this.#listeners
    this.#listeners = []
    for (const listener of listeners) called(listener)
  }

  /** The only event is `abort`, once. */
  addEventListener(_type: string, listener: AbortListener): void {
    if (!this.aborted && !this.#listeners.includes(listener)) this.#listeners.push(listener)
  }

  removeEventListener(_type: string, listener: AbortListener): void {
    const at = this.#listeners.indexOf(listener)
    if (at !== -1) this.#listeners.splice(at, 1)
  }

  dispatchEvent(): boolean {
    throw new TypeError('an EndSignal ends by end()')
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }
}
