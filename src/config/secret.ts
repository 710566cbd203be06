import { inspect } from 'node:util'

const hidden = '[redacted]'

/**
 * A configured secret. It shows itself only when asked by name: JSON, string and inspect forms are redacted,
 * so that a config which ends up in a log line or an admin answer carries no secret with it.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** False for the empty text, which means "not configured". */
  get isSet(): boolean {
    return this.#value !== ''
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return this.isSet ? hidden : ''
  }

  toJSON(): string {
    return this.toString()
  }

  [inspect.custom](): string {
    return this.toString()
  }
}
