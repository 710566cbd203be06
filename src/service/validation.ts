import type { Endpoint, Row } from './row.ts'

export type ValidationInput = {
  readonly method: string
  readonly row: Row
  readonly endpoint: Endpoint
  readonly pathParameters: Readonly<Record<string, string>>
  /** Raw query without `?`; '' when there is none. */
  readonly query: string
  readonly contentType: string | undefined
  /** Complete content; undefined when there is none or when it is streamed unread. */
  readonly content: Buffer | undefined
  /** Header fields of the request, by lower-case names; absent where none are known. */
  readonly fields?: Readonly<Record<string, string | string[] | undefined>> | undefined
}

/** Query parameters that the row does not declare, tracking parameters excepted. */
export type UndeclaredParameters = {
  readonly handling: 'sent' | 'stripped'
  /** As the client wrote them: for explain output, never for a log line or a label. */
  readonly names: readonly string[]
}

export type Validation =
  | {
      readonly kind: 'valid'
      /** Canonical query without `?`: for the cache key and for the upstream. */
      readonly query: string
      /** Typed values of all arguments from path, query and content, defaults filled in. */
      readonly arguments: Readonly<Record<string, unknown>>
      /** Absent when the query has none. */
      readonly undeclared?: UndeclaredParameters
      /** Something that the contract does not know may show in the response. */
      readonly mayShowAnything?: boolean
      /** Declared headers and cookies in their one spelling: part of the cache key beside path and query. */
      readonly variant?: string
      /** Cookie field with the declared cookies alone, for requests whose response is stored. */
      readonly cookie?: string
      /** The query contains a credential. */
      readonly hasQueryCredential?: boolean
    }
  | {
      readonly kind: 'invalid'
      readonly status: number
      /** Code from the contract's closed list, e.g. `rest_invalid_param`: a metric label. */
      readonly code: string
      /** Error in the service's own shape. */
      readonly body: unknown
    }

export type Invalid = Extract<Validation, { kind: 'invalid' }>

/** How a request does not fit its operation in an OpenAPI document. */
export type RequestFault = {
  readonly kind: 'fault'
  readonly status: number
  /** A closed list, because the codes are metric labels. */
  readonly code:
    | 'unreadable_query'
    | 'too_many_parameters'
    | 'invalid_parameter'
    | 'missing_body'
    | 'invalid_body'
    | 'unsupported_content_type'
  /** `query.limit` for a parameter, `body/name` for a value of the body, `json` and `repeated name` for a body that cannot be read. */
  readonly subject: string
  readonly errors: readonly {
    /** RFC 6901, in a URI fragment as RFC 9457 §3 shows it: into the body, or into the value of the parameter. */
    readonly pointer: string
    readonly parameter?: string
    readonly in?: string
    readonly detail: string
  }[]
}

export type Validator = { validate(input: ValidationInput): Validation }
