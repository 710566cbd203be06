import { errorTable, GatewayError } from '../errors.ts'
import type { WriteOutcome } from '../exchange/events.ts'
import type { ErrorShape } from '../service/contract.ts'
import type { ItemError } from './item.ts'

const itemErrorTable = {
  parse_path_failed: { status: 400, code: 'parse_path_failed', message: 'Could not parse the path.' },
  no_route: { status: 404, code: errorTable.no_route.siteCode, message: errorTable.no_route.message },
  not_sent: { status: 504, code: 'trellis_not_sent', message: errorTable.not_sent.message },
  outcome_unknown: {
    status: 504,
    code: 'trellis_outcome_unknown',
    message: 'The deadline passed before the response arrived; the request may have been executed.',
  },
  answer_too_large: {
    status: 502,
    code: 'trellis_answer_too_large',
    message: 'The response is too large for a batch; the request itself was executed.',
  },
  not_json: {
    status: 502,
    code: 'trellis_upstream_broken',
    message: 'The response of the upstream is not JSON.',
  },
} as const

/** The error of that name, with the status of the upstream's own response where there is one. */
export const itemError = (name: keyof typeof itemErrorTable, status?: number): ItemError => {
  const { code, message, status: usual } = itemErrorTable[name]
  const shownStatus = status ?? usual
  return { status: shownStatus, body: { code, message, data: { status: shownStatus } }, headers: [] }
}

/** An error of an item in the shape of its service; one that a validator has made is in it already. */
export const shapedError = (errors: ErrorShape, error: ItemError): ItemError => ({
  ...error,
  body: errors.itemBody(error.status, error.body),
})

/** A write without a response of the upstream, with how far it got. */
export class WriteFailed extends Error {
  readonly outcome: WriteOutcome

  constructor(cause: unknown, outcome: WriteOutcome) {
    super('A write got no response.', { cause })
    this.outcome = outcome
  }
}

/** The response of an item is more than the batch may hold. */
export class ResponseTooLarge extends Error {}

/** The error of an item that threw; that of a write states whether the write may have happened. */
export const thrownItemError = (thrown: unknown): ItemError => {
  if (thrown instanceof ResponseTooLarge) return itemError('answer_too_large')
  const { reason, outcome } =
    thrown instanceof WriteFailed
      ? { reason: thrown.cause, outcome: thrown.outcome }
      : { reason: thrown, outcome: undefined }
  const error = reason instanceof GatewayError ? reason : new GatewayError('internal', { cause: reason })
  const { status, message, siteCode } = error.facts
  const { retryAfterSeconds } = error
  const retryAfter = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)]
  const headers = [...error.headers, ...retryAfter]
  if (error.body !== undefined) return { status, body: error.body, headers }
  const data = { status, ...(outcome === undefined ? {} : { outcome }) }
  return { status, body: { code: siteCode ?? `trellis_${error.code}`, message, data }, headers }
}
