import { parseAcceptEncoding } from '../http/accept-encoding.ts'
import { parseCacheControl } from '../http/cache-control.ts'
import { requestField } from '../http/fields.ts'
import type { Coding } from './compress.ts'
import type { ReaderFacts } from './reader-answer.ts'

/** Which forms of a response a reader takes. */
export type AcceptedForms = {
  /** Those it would rather have than the uncoded one, best first. */
  readonly codings: readonly Coding[]
  readonly uncoded: boolean
}

const onlyUncoded: AcceptedForms = { codings: [], uncoded: true }

/** Clients send a handful of values; more of them are a flood. */
const rememberedValues = 64
const longestValue = 256

const readValue = (value: string, offered: readonly Coding[]): AcceptedForms => {
  const accepted = parseAcceptEncoding(value)
  const weightOf = (coding: Coding): number => accepted.weightOf(coding) ?? 0
  // Where identity is not named it is acceptable, and nothing says that it is preferred (RFC 9110 §12.5.3).
  const uncoded = accepted.weightOf('identity')
  const codings = offered
    .filter((coding) => weightOf(coding) > 0 && weightOf(coding) >= (uncoded ?? 0))
    .sort((a, b) => weightOf(b) - weightOf(a))
  return { codings, uncoded: uncoded !== 0 }
}

/** A range is one of the uncoded bytes; and a reader may forbid coding on the way (RFC 9111 §5.2.1.6). */
const takesUncodedOnly = ({ fields }: ReaderFacts): boolean =>
  fields['range'] !== undefined ||
  (fields['cache-control'] !== undefined &&
    parseCacheControl(requestField(fields, 'cache-control')).has('no-transform'))

/** Makes the function that reads what a reader accepts of the codings on offer, best one first where weights are equal. */
export const createAcceptedForms = (offered: readonly Coding[]): ((reader: ReaderFacts) => AcceptedForms) => {
  const known = new Map<string, AcceptedForms>()
  return (reader) => {
    const value = requestField(reader.fields, 'accept-encoding')
    if (value === undefined || takesUncodedOnly(reader)) return onlyUncoded
    const remembered = known.get(value)
    if (remembered !== undefined) return remembered
    const accepted = readValue(value, offered)
    if (known.size >= rememberedValues) known.clear()
    if (value.length <= longestValue) known.set(value, accepted)
    return accepted
  }
}
