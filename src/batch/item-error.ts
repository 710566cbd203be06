import { type ErrorCode, errorTable, GatewayError } from '../errors.ts'
import type { FieldLines } from '../http/fields.ts'

/** An item's answer that the gateway made: WordPress's error shape. */
export type ItemError = { readonly status: number; readonly body: unknown; readonly fields: FieldLines }

const itemErrorTable = {
  parse_path_failed: { status: 400, code: 'parse_path_failed', message: 'Could not parse the path.' },
  no_route: { status: 404, code: 'rest_no_route', message: errorTable.no_route.message },
  not_sent: { status: 504, code: 'trellis_not_sent', message: errorTable.not_sent.message },
  outcome_unknown: {
    status: 504,
    code: 'trellis_outcome_unknown',
    message: 'The deadline passed before the response arrived; the request may have been executed.',
  },
  failed_dependency: {
    status: 424,
    code: 'trellis_failed_dependency',
    message: 'An item that this one depends on did not succeed; nothing was sent.',
  },
  unresolved_reference: {
    status: 424,
    code: 'trellis_unresolved_reference',
    message: 'A reference has no usable value; nothing was sent.',
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

/** The error of that name, with the status of the upstream's own answer where that says more. */
export const itemError = (name: keyof typeof itemErrorTable, status?: number): ItemError => {
  const { code, message, status: usual } = itemErrorTable[name]
  const shown = status ?? usual
  return { status: shown, body: { code, message, data: { status: shown } }, fields: [] }
}

/** These leave open whether the upstream did what was asked. */
const outcomeUnknown: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['upstream_timeout', 'upstream_broken'])
const notSent: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'upstream_busy',
  'upstream_unreachable',
  'not_sent',
])

const outcomeOf = ({ code, unsent }: GatewayError): { outcome?: 'unknown' | 'not-sent' } => {
  if (unsent) return { outcome: 'not-sent' }
  if (outcomeUnknown.has(code)) return { outcome: 'unknown' }
  return notSent.has(code) ? { outcome: 'not-sent' } : {}
}

/** The answer of an item is more than the batch may hold. */
export class AnswerTooLarge extends Error {}

/** An item whose run threw, in the same shape; a write says whether it may have happened. */
export const thrownItemError = (thrown: unknown, isWrite: boolean): ItemError => {
  if (thrown instanceof AnswerTooLarge) return itemError('answer_too_large')
  const error = thrown instanceof GatewayError ? thrown : new GatewayError('internal', { cause: thrown })
  const { status, message, siteCode } = error.facts
  const { retryAfterSeconds } = error
  const retryAfter = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)]
  const fields = [...error.fields, ...retryAfter]
  if (error.body !== undefined) return { status, body: error.body, fields }
  const data = { status, ...(isWrite ? outcomeOf(error) : {}) }
  return { status, body: { code: siteCode ?? `trellis_${error.code}`, message, data }, fields }
}
