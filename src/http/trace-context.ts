import { fieldValue, type RequestFields, requestField, withoutFields } from './message.ts'

/** Where in which trace something happens (W3C Trace Context, https://www.w3.org/TR/trace-context/). Lower-case hexadecimal. */
export type TraceContext = {
  readonly traceId: string
  readonly spanId: string
  /** The caller records the trace. */
  readonly sampled: boolean
}

const form = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-[\x21-\x7e]{0,256})?$/

const onlyZeros = /^0+$/

/** §3.2.2: version ff is none, ids of zeros are none, and version 00 has nothing behind the flags. */
export const parseTraceParent = (value: string | undefined): TraceContext | undefined => {
  if (value === undefined || value.length > 320) return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(value) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (onlyZeros.test(traceId) || onlyZeros.test(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The context of a request, if it is valid. */
export const traceContextOf = (fields: RequestFields): TraceContext | undefined =>
  parseTraceParent(requestField(fields, 'traceparent'))

const formatted = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`

const traceNames: ReadonlySet<string> = new Set(['traceparent', 'tracestate'])

/**
 * Sets the trace fields of an upstream request: the open span is the parent, otherwise the client's fields are sent. §3.3.1.5 and
 * §4.3: without a valid traceparent, tracestate is ignored, and neither is sent. Changes the given lines where it can.
 */
export const withTraceFields = (fields: string[], open: TraceContext | undefined): string[] => {
  const parent = fieldValue(fields, 'traceparent')
  const state = fieldValue(fields, 'tracestate')
  const sent = parent === undefined && state === undefined ? fields : withoutFields(fields, traceNames)
  const known = parseTraceParent(parent)
  if (open !== undefined) sent.push('traceparent', formatted(open))
  else if (known !== undefined) sent.push('traceparent', parent as string)
  if (known !== undefined && state !== undefined) sent.push('tracestate', state)
  return sent
}
