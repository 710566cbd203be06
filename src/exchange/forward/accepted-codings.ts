import { acceptedForms, forwardedCodings } from '../../http/content-coding.ts'
import { requestHeader } from '../../http/headers/header-lines.ts'
import { memoize } from '../../http/memo.ts'
import { isHead } from '../../http/methods.ts'
import type { ValidatedContext } from '../request-context.ts'

/** `Accept-Encoding` for a response that the gateway reads or rewrites. */
export const uncoded = 'identity'

const passed = memoize(forwardedCodings, 64)

/** Codings that a stored response is decoded from, once for all clients. */
const decodable = ['br', 'gzip'] as const

const stored = memoize((value) => {
  const { codings } = acceptedForms(value, decodable)
  return codings.length === 0 ? uncoded : codings.join(', ')
}, 64)

const acceptedBy = ({ request, service }: ValidatedContext): string | undefined =>
  // Names and URLs are translated in uncoded contents only.
  service.address.translation === undefined ? requestHeader(request.headers, 'accept-encoding') : undefined

/** `Accept-Encoding` for a response to this client alone, as the upstream sends it. */
export const codingsToPass = (context: ValidatedContext): string => {
  const accepted = acceptedBy(context)
  return accepted === undefined ? uncoded : passed(accepted)
}

/**
 * `Accept-Encoding` for a response that may be stored. The client accepts what is asked for: it gets the response unchanged where
 * that is not stored. Parts and lengths are those of the uncoded form.
 */
export const codingsToStore = (
  context: ValidatedContext,
  added: Readonly<Record<string, string>>,
): string => {
  const { method, request } = context
  const isPartial = request.headers['range'] !== undefined || added['range'] !== undefined
  const accepted = isHead(method) || isPartial ? undefined : acceptedBy(context)
  return accepted === undefined ? uncoded : stored(accepted)
}
