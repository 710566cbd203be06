import { OpenList } from '../../http/bounds/open-list.ts'

export type Abortable = { index: number; abort(reason: Error): void }

export class RequestsInFlight<One extends Abortable> extends OpenList<One> {
  #idle: (() => void)[] = []

  override remove(request: One): void {
    super.remove(request)
    if (this.size > 0) return
    const waiting = this.#idle
    this.#idle = []
    for (const resolve of waiting) resolve()
  }

  /** Resolves when no request is in flight. */
  async idle(): Promise<void> {
    if (this.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  abortAll(reason: Error): void {
    for (const request of [...this.all]) request.abort(reason)
  }
}

/** Interval of the checks; a slow client is detected at most this late. */
export const pollIntervalMs = 250
