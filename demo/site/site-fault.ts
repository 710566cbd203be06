import type { Caller } from './caller.ts'

/** An error in WordPress's terms; thrown where it is known, written by response.ts. */
export class SiteFault extends Error {
  readonly status: number
  readonly code: string
  readonly data: Readonly<Record<string, unknown>>
  readonly more: readonly SiteFault[]

  constructor(
    status: number,
    code: string,
    message: string,
    data: Readonly<Record<string, unknown>> = {},
    more: readonly SiteFault[] = [],
  ) {
    super(message)
    this.name = 'SiteFault'
    this.status = status
    this.code = code
    this.data = data
    this.more = more
  }

  get body(): Record<string, unknown> {
    const own = { code: this.code, message: this.message, data: { status: this.status, ...this.data } }
    return this.more.length === 0 ? own : { ...own, additional_errors: this.more.map((other) => other.body) }
  }
}

/** The refusal for lack of rights: 401 for the anonymous, 403 for a known user. */
export const denied = (caller: Caller, code: string, message: string): SiteFault =>
  new SiteFault(caller.role === 'anonymous' ? 401 : 403, code, message)

/** `rest_invalid_param` for one parameter, as WordPress words it. */
export const invalidParameter = (name: string, code: string, message: string, data: unknown): SiteFault =>
  new SiteFault(400, 'rest_invalid_param', `Invalid parameter(s): ${name}`, {
    params: { [name]: message },
    details: { [name]: { code, message, data } },
  })
