import { inspect } from 'node:util'

const hidden = '[redacted]'

/**
 * A configured secret. Only `reveal` returns it; its JSON, string and inspect forms are redacted, so that a configuration
 * in a log line or an admin response contains no secret.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  /** The empty text means "not configured". */
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
