import type { Endpoint, Row } from './row.ts'

/** What a validator reads of a request whose row is known. */
export type ValidationInput = {
  readonly method: string
  readonly row: Row
  readonly endpoint: Endpoint
  readonly pathParameters: Readonly<Record<string, string>>
  /** Raw query without `?`; '' when there is none. */
  readonly query: string
  readonly contentType: string | undefined
  /** Complete content; undefined when there is none or when it is streamed on unread. */
  readonly content: Buffer | undefined
}

/** Query parameters that no row declares, tracking parameters apart, and what becomes of them. */
export type UndeclaredParameters = {
  readonly handling: 'sent' | 'stripped'
  /** As the client wrote them: for an operator who asks, never for a log line or a label. */
  readonly names: readonly string[]
}

export type Validation =
  | {
      readonly kind: 'valid'
      /** Canonical query without `?`: the one spelling that is keyed and sent. */
      readonly query: string
      /** Typed values of all arguments from path, query and content, defaults filled in. */
      readonly arguments: Readonly<Record<string, unknown>>
      /** Absent when the query has none. */
      readonly undeclared?: UndeclaredParameters
    }
  | {
      readonly kind: 'invalid'
      readonly status: number
      /** Code from the contract's closed list, e.g. `rest_invalid_param`: a metric label. */
      readonly code: string
      /** Error in the service's own shape. */
      readonly body: unknown
    }

export type Validator = { validate(input: ValidationInput): Validation }
